"""Of the volume that agent and driver share, what `install-hook` looks at before it loads anything."""

DIR = "/run/spark-ui-agent"  # where it is mounted, unless SPARK_UI_AGENT_DIR says otherwise
PROOF_FILE = "proof.json"  # what was proven; there as soon as a UI was
LOCK_FILE = "installing"  # empty; locked by whoever writes what the driver reads
INSTALLED_FILE = "installed"  # empty; there as soon as all that the driver reads stands
