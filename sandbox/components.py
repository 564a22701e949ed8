"""How etcd, kube-apiserver and kube-controller-manager are started: one machine, no kubelet, nothing kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.pki import Certificate, Pki

SERVICE_RANGE = "10.96.0.0/16"
# the first address of the range, which the API server gives to the Service "kubernetes"
SERVICE_IP = "10.96.0.1"
SERVER_NAMES = (
    "localhost",
    "127.0.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    SERVICE_IP,
)
ALL_CONTROLLERS = "*"
# these two would mark the Nodes, which no kubelet keeps alive, as lost and evict their Pods
CONTROLLERS = f"{ALL_CONTROLLERS},-node-lifecycle-controller,-taint-eviction-controller"


@dataclass(frozen=True)
class Layout:
    """The files of one running control plane, all below ``folder``."""

    folder: Path

    @property
    def pki(self) -> Path:
        """Folder of the certificate authority."""
        return self.folder / "pki"

    @property
    def admin(self) -> Certificate:
        """Certificate of the administrator, whom RBAC lets do everything."""
        return Certificate(self.pki / "admin.crt", self.pki / "admin.key")

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator."""
        return self.folder / "admin.kubeconfig"

    def log(self, name: str) -> Path:
        """Log of one component."""
        return self.folder / f"{name}.log"

    @property
    def audit_log(self) -> Path:
        """What kube-apiserver was asked by ServiceAccounts; see `sandbox.audit`."""
        return self.folder / "audit.log"

    @property
    def audit_policy(self) -> Path:
        """Which requests go into that log."""
        return self.folder / "audit-policy.json"

    @property
    def etcd_socket(self) -> Path:
        """Where etcd serves: a socket in a private folder, since it asks nobody who he is."""
        return self.folder / "etcd.sock"


def etcd(binaries: Path, layout: Layout) -> list[str]:
    """Return etcd's command line."""
    return [
        str(binaries / "etcd"),
        f"--data-dir={layout.folder}/etcd",
        f"--listen-client-urls=unix://{layout.etcd_socket}",
        # asked for with the former and told to members of a cluster only, of which there are none
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:0",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(binaries: Path, layout: Layout, port: int, node_ip: str = "") -> list[str]:
    """Return kube-apiserver's command line; its port is reserved by a bound socket with SO_REUSEPORT.

    It serves on the loopback alone, or on all addresses for the Pods of a real node whose address is ``node_ip``.
    """
    pki = layout.pki
    if node_ip:
        reach = [
            "--bind-address=0.0.0.0",
            f"--advertise-address={node_ip}",
            # for logs and exec, which it gets from the kubelet
            f"--kubelet-client-certificate={pki}/kubelet-client.crt",
            f"--kubelet-client-key={pki}/kubelet-client.key",
            "--kubelet-preferred-address-types=InternalIP",
        ]
    else:
        # the address of the loopback would be refused as an endpoint of the Service "kubernetes"
        reach = ["--bind-address=127.0.0.1", "--endpoint-reconciler-type=none"]
    return [
        str(binaries / "kube-apiserver"),
        f"--etcd-servers=unix://{layout.etcd_socket}",
        *reach,
        f"--secure-port={port}",
        "--permit-port-sharing",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--client-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki}/service-accounts.pub",
        f"--service-account-signing-key-file={pki}/service-accounts.key",
        f"--audit-policy-file={layout.audit_policy}",
        f"--audit-log-path={layout.audit_log}",
        "--profiling=false",
    ]


def controller_manager(
    binaries: Path, layout: Layout, kubeconfig: Path, controllers: str = CONTROLLERS
) -> list[str]:
    """Return kube-controller-manager's command line; it serves nothing itself."""
    return [
        str(binaries / "kube-controller-manager"),
        f"--kubeconfig={kubeconfig}",
        "--secure-port=0",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        # the default of 20 calls per second alone costs two seconds of starting
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        f"--service-account-private-key-file={layout.pki}/service-accounts.key",
        f"--root-ca-file={layout.pki}/ca.crt",
        f"--controllers={controllers}",
        "--profiling=false",
    ]


def make_pki(layout: Layout, extra_hosts: Sequence[str]) -> Pki:
    """Make the authority and what the components need of it."""
    layout.pki.mkdir(mode=0o700)
    pki = Pki.create(layout.pki, "spark-ui-agent-sandbox")
    pki.server("apiserver", [*SERVER_NAMES, *extra_hosts])
    pki.signing_key("service-accounts")
    return pki
