#!/usr/bin/env bash
# Makes an environment for each peer below $PEERS (default: peers/ in the system's temporary folder).
set -eu
PEERS=${PEERS:-${TMPDIR:-/tmp}/peers}
make_environment() { # name, packages
  local name=$1; shift
  [ -e "$PEERS/$name/complete" ] && return
  ${PYTHON:-python3} -m venv "$PEERS/$name"
  "$PEERS/$name/bin/pip" install -q "$@"
  touch "$PEERS/$name/complete"
}
make_environment tf tensorflow-cpu==2.21.0 tf-keras==2.21.0 'numpy<2'
make_environment pt torch==2.13.0 numpy
make_environment jx jax==0.10.2 jaxlib==0.10.2 numpy
# Keras for Flowstone, beside its own environment, whose Python this must be ($PYTHON).
if [ ! -e "$PEERS/libraries/complete" ]; then
  ${PYTHON:-python3} -m pip install -q --no-deps --target "$PEERS/libraries" \
    keras==2.3.1 keras-applications==1.0.8 keras-preprocessing==1.1.2 h5py pyyaml scipy six
  touch "$PEERS/libraries/complete"
fi
if [ ! -e "$PEERS/libraries/tflearn" ]; then  # and TFLearn
  ${PYTHON:-python3} -m pip install -q --no-deps --target "$PEERS/libraries" tflearn==0.5.0 pillow
fi
