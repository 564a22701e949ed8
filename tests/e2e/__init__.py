"""Real Pods on a real node: kubelet, containerd, kube-proxy, spark-submit, and the image of the Dockerfile."""
