"""How containerd, kubelet, kube-proxy and kube-scheduler are started on the node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.components import Layout
from sandbox.image.spark import PAUSE
from sandbox.pki import Pki
from sandbox.pods import NODE

# beside the range of the Services, 10.96.0.0/16, and the addresses of the namespace, 10.98.0.0/24
POD_RANGE = "10.97.0.0/24"
API_PORT = 6443
PROXY_METRICS_PORT = 10249
CNI_PLUGINS = Path("/usr/lib/cni")


@dataclass(frozen=True)
class Node:
    """The files of one running node, beside those of its control plane, and its place in the control groups."""

    binaries: Path
    layout: Layout
    address: str
    cgroup: str

    @property
    def folder(self) -> Path:
        """Folder of everything."""
        return self.layout.folder

    @property
    def containerd_socket(self) -> Path:
        """Where containerd serves."""
        return self.folder / "containerd.sock"

    def containerd(self) -> list[str]:
        """Write containerd's configuration and CNI's; return its command line."""
        plugin = {"type": "ptp", "ipam": self._ipam()}
        # ptp and not a bridge: each packet between Pods is routed, so Service addresses are turned back on the way home
        network = {"cniVersion": "1.0.0", "name": "pods", "plugins": [plugin]}
        cni = self.folder / "cni"
        cni.mkdir()
        (cni / "10-pods.conflist").write_text(json.dumps(network))
        config = self.folder / "containerd.toml"
        config.write_text(
            _CONTAINERD.format(
                folder=self.folder,
                socket=self.containerd_socket,
                pause=PAUSE,
                cni=cni,
                plugins=CNI_PLUGINS,
            )
        )
        return ["containerd", f"--config={config}"]

    def ctr(self, *arguments: str | Path) -> list[str]:
        """Return a command line of containerd's client."""
        return ["ctr", f"--address={self.containerd_socket}", "--namespace=k8s.io", *map(str, arguments)]

    def kubelet(self, pki: Pki, url: str) -> list[str]:
        """Write the kubelet's configuration; return its command line."""
        resolv = self.folder / "resolv.conf"
        # no name server: there is none that a Pod could reach
        resolv.touch()
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(pki.ca_file)}},
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.cgroup}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "containerRuntimeEndpoint": f"unix://{self.containerd_socket}",
            "podLogsDir": str(self._made("podlogs")),
            "volumePluginDir": str(self._made("plugins")),
            "resolvConf": str(resolv),
            # a full disk of the machine is no reason to evict here, and nothing is ever pulled again
            "evictionHard": {"memory.available": "100Mi"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
        }
        user = pki.client("kubelet", f"system:node:{NODE}", ["system:nodes"])
        return [
            str(self.binaries / "kubelet"),
            f"--config={self._config('kubelet', config)}",
            f"--kubeconfig={pki.kubeconfig(self.folder / 'kubelet.kubeconfig', url, user)}",
            f"--hostname-override={NODE}",
            f"--node-ip={self.address}",
            f"--root-dir={self._made('kubelet')}",
            f"--cert-dir={self._made('kubelet-pki')}",
        ]

    def proxy(self, pki: Pki, url: str) -> list[str]:
        """Write kube-proxy's configuration; return its command line."""
        user = pki.client("proxy", "system:kube-proxy")
        config = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "clusterCIDR": POD_RANGE,
            "hostnameOverride": NODE,
            "bindAddress": self.address,
            "healthzBindAddress": "127.0.0.1:10256",
            # not the loopback: the kubelet drops what comes there from another address, such as the tests'
            "metricsBindAddress": f"{self.address}:{PROXY_METRICS_PORT}",
            "clientConnection": {
                "kubeconfig": str(pki.kubeconfig(self.folder / "proxy.kubeconfig", url, user))
            },
            # 0: leave the machine's connection tracking as it is
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
        }
        return [str(self.binaries / "kube-proxy"), f"--config={self._config('proxy', config)}"]

    def scheduler(self, pki: Pki, url: str) -> list[str]:
        """Return kube-scheduler's command line; it serves nothing itself."""
        user = pki.client("scheduler", "system:kube-scheduler")
        config = pki.kubeconfig(self.folder / "scheduler.kubeconfig", url, user)
        return [
            str(self.binaries / "kube-scheduler"),
            f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
            "--leader-elect=false",
            "--secure-port=0",
        ]

    def _ipam(self) -> dict[str, object]:
        return {
            "type": "host-local",
            "dataDir": str(self.folder / "cni-addresses"),
            "ranges": [[{"subnet": POD_RANGE}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        }

    def _made(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir()
        return folder

    def _config(self, name: str, content: Mapping[str, object]) -> Path:
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(content, indent=1))
        return file


# restrict_oom_score_adj: a container around us may not let us lower it
_CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "/run/containerd/state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{cni}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""
