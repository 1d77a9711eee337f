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
make_environment tf tensorflow-cpu==2.21.0 'numpy<2'
make_environment pt torch==2.13.0 numpy
make_environment jx jax==0.10.2 jaxlib==0.10.2 numpy
