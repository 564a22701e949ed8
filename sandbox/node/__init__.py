"""A real Kubernetes node on this machine: own namespaces, containerd, kubelet, kube-proxy, kube-scheduler."""
