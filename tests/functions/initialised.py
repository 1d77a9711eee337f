"""Values of the default graph whose variables have their first values."""

from __future__ import annotations

from typing import Any

import flowstone as tf


def run(fetches: Any) -> Any:
    """The values of the fetches, in a session of their own."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)
