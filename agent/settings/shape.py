"""What the settings are once they are read: frozen values, and the one error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PREFIX = "SPARK_UI_AGENT_"
IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SOCKET = "agent.sock"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who we are, from the downward API. Empty strings where the template does not tell."""

    pod: str = ""
    namespace: str = ""
    uid: str = ""
    ips: frozenset[str] = frozenset()
    host_ip: str = ""
    application: str = ""

    @property
    def host_network(self) -> bool:
        """True when the Pod shares the node's network: its address is the node's."""
        return bool(self.host_ip) and self.host_ip in self.ips

    @property
    def holder(self) -> str:
        """Our mark on a Service: `<pod>/<uid>`."""
        return f"{self.pod}/{self.uid}"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, checked. Times are in seconds."""

    identity: Identity
    service: str
    service_given: bool
    service_labels: Mapping[str, str]
    create: bool
    create_labels: Mapping[str, str]
    create_annotations: Mapping[str, str]
    adopt: str
    service_type: str
    expose: int
    port_name: str
    selector: Mapping[str, str]
    scheme: str
    filtered_ui: str
    contexts: str
    driver_container: str
    driver_uid: int
    dir: Path
    driver_conf_dir: Path | None
    hook: str
    hook_timeout: float
    guard: str
    settle: float
    health_address: str
    mode: str
    token_file: Path
    ca_file: Path
    api_url: str
    log_level: str
    log_format: str
    warnings: tuple[str, ...] = ()

    @property
    def hook_wanted(self) -> bool:
        """True when hook.xml is to be written: `auto` needs the driver's conf directory to be seen."""
        return self.hook == "on" or (self.hook == "auto" and self.driver_conf_dir is not None)

    @property
    def control_socket(self) -> Path:
        """Where `status`, `drain` and `discover` reach the running agent."""
        return self.dir / SOCKET


class SettingsError(ValueError):
    """One message for each bad variable: its name, what was found, what is allowed.

    `settings` is what was good, with the default in place of each bad value: enough for the agent to stay up and
    say what is wrong, never to touch a Service.
    """

    def __init__(self, problems: Sequence[str], settings: Settings) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)
        self.settings = settings
