"""The command ``python -m sandbox.node``: a real Kubernetes cluster of one node until Ctrl-C (needs root).

It prints ``KUBECONFIG=...`` when the node is Ready. All of it is gone when the command ends, however it ends. Nothing
outside is changed: the node has network, mount and pid namespaces, a control group and a temporary folder of its own,
and the API server is reached through a port of the loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sandbox.binaries import CONTROL_PLANE, NODE, binaries
from sandbox.ending import cancel_when_ending, leave_on_signals
from sandbox.image import images
from sandbox.netns import NamespaceError
from sandbox.node.cgroups import CgroupError
from sandbox.node.needs import MissingError, check
from sandbox.node.outside import running
from sandbox.processes import DaemonError
from sandbox.progress import CommandError
"""
