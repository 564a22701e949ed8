#!/usr/bin/env bash
# Writes requirements/*.txt from pyproject.toml: hashes for every platform and Python 3.11 to 3.14, no addresses.
# What is pinned stays as it is; --upgrade renews everything.
# usage: scripts/lock.sh UV [--upgrade]
set -euo pipefail
uv=$1
shift
compile() {
    local to=$1
    shift
    echo "lock: requirements/$to" >&2
    "$uv" pip compile "$@" --output-file "requirements/$to" --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --quiet
}
compile dev.txt pyproject.toml --group dev "$@"
# both hold the versions that the tests ran with
compile agent.txt pyproject.toml --constraint requirements/dev.txt "$@"
compile build.txt --group build --constraint requirements/dev.txt "$@"
