"""spark-ui-agent: keeps one Kubernetes Service pointing at the web UI that a Spark driver really bound."""

__version__ = "0.1.0"
