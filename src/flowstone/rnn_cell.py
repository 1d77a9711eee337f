"""`flowstone.nn.rnn_cell`: recurrent cells."""

from flowstone.layers.cell_wrappers import DeviceWrapper, DropoutWrapper, MultiRNNCell, ResidualWrapper
from flowstone.layers.lstm_cells import BasicLSTMCell, LSTMCell, LSTMStateTuple
from flowstone.layers.recurrent_cells import BasicRNNCell, GRUCell, RNNCell
