"""Looking into checkpoints, under the names that `tf.train` has, too."""

from __future__ import annotations

from flowstone.train import init_from_checkpoint as init_from_checkpoint
from flowstone.train import list_variables as list_variables
from flowstone.train import load_checkpoint as load_checkpoint
from flowstone.train import load_variable as load_variable
