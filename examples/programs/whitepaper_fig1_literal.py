"""Figure 1 of the white paper to the letter: no dtype or shape for x, Session("local"), s.Run.

The edits: Python 3's print and range, the imports that the figure leaves out, an initialisation, and what it
elides, marked [...] there: the cost, and the input. W is 784x100 and stands on the left of x, so the 100-d
input is a column; W x is then 784x1, and b widens it to 784x100."""
import numpy as np
import tensorflow as tf

b = tf.Variable(tf.zeros([100]))                     # 100-d vector, init to zeroes
W = tf.Variable(tf.random_uniform([784, 100], -1, 1))  # 784x100 matrix w/rnd vals
x = tf.placeholder(name="x")                         # Placeholder for input
relu = tf.nn.relu(tf.matmul(W, x) + b)               # Relu(Wx+b)
C = [tf.reduce_mean(relu)]                           # Cost computed as a function
                                                     # of Relu

s = tf.Session("local")
s.Run(tf.initialize_all_variables())
for step in range(0, 10):
    input = np.random.rand(100, 1)                   # Create 100-d vector for input
    result = s.Run(C, feed_dict={x: input})          # Fetch cost, feeding x=input
    print(step, result)
