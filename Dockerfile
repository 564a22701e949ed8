# The image of spark-ui-agent. Nothing but the interpreter of the base image and /opt/spark-ui-agent runs.
#   docker build --tag spark-ui-agent .        BASE: any image with Python 3.11 or newer, venv and pip at build time
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY requirements/agent.txt requirements/build.txt requirements/
COPY scripts/image_env.py scripts/
COPY agent/ agent/
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python3 scripts/image_env.py /opt/spark-ui-agent

FROM ${BASE}
LABEL org.opencontainers.image.title="spark-ui-agent" \
      org.opencontainers.image.description="Keeps one Kubernetes Service pointing at the web UI that a Spark driver really bound" \
      org.opencontainers.image.licenses="Apache-2.0"
# Official Python images come without bytecode, and a read-only root never gets any: three times the CPU at each start. Others
# have some that a builder which sets files' times makes invalid: all of it is made anew, and is taken as it is.
# pip is of no use here.
RUN python3 -m pip uninstall --quiet --yes --root-user-action=ignore pip \
 && lib="$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" \
 && rm -rf "$lib/ensurepip" \
 && python3 -m compileall -q -f -j 0 --invalidation-mode unchecked-hash \
      -x '/(site-packages|dist-packages|test|tests|idlelib|lib2to3|tkinter|turtledemo|pydoc_data)/' "$lib"
COPY --from=build /opt/spark-ui-agent /opt/spark-ui-agent
# found by its name: kubectl exec, postStart and preStop
RUN ln -s /opt/spark-ui-agent/bin/spark-ui-agent /usr/local/bin/spark-ui-agent
# SSL_CERT_*: aiohttp loads the system's CAs at import (35 ms of CPU, 2 MiB); the agent trusts the cluster's CA alone,
# which it loads by itself.
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SSL_CERT_FILE=/dev/null \
    SSL_CERT_DIR=/nonexistent
WORKDIR /
# Spark's own images use 185, and files shared with the driver are then its own; any other id works as well
# (OpenShift gives a random one, with group 0).
USER 185:0
ENTRYPOINT ["/opt/spark-ui-agent/bin/spark-ui-agent"]
