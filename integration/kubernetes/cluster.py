"""A Kubernetes of one node: API server, controllers, scheduler, kubelet, name server and Service addresses, on
containerd.

Everything is a process of this machine. Pods have addresses on a bridge of their own, and do not get out of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from integration.docker.images import docker
from integration.launcher.process import Server, free_ports
from integration.patience import wait_for

HERE: Final = Path(__file__).parent
BINARIES: Final = HERE.parents[1] / ".cache/kubernetes"
NODE: Final = "node-0"
NODE_ADDRESS: Final = "10.99.0.1"
PODS, SERVICES, BRIDGE = "10.88.0.0/16", "10.96.0.0/16", "kubernetes0"
PAUSE: Final = "docker.io/library/pause:1"
PACKAGES: Final = {
    "etcd": "etcd-server",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "containerd": "containerd",
    "runc": "runc",
}

_NETWORK: Final = {
    "cniVersion": "0.4.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": BRIDGE,
            "isGateway": True,
            "ipMasq": False,
            "hairpinMode": True,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "10.0.0.0/8"}]},
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}
# restrict_oom_score_adj: in a sandbox without CAP_SYS_RESOURCE containers do not start otherwise.
_CONTAINERD: Final = """version = 2
root = "{root}/images"
state = "{root}/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  disable_tcp_service = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{root}/network"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"""
_KUBELET: Final = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "failCgroupV1": False,
    "cgroupDriver": "cgroupfs",
    "cgroupsPerQOS": False,
    "enforceNodeAllocatable": [],
    "failSwapOn": False,
    "address": NODE_ADDRESS,
    "healthzBindAddress": "127.0.0.1",
    "makeIPTablesUtilChains": False,
    "resolvConf": "",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "clusterDNS": [NODE_ADDRESS],
    "clusterDomain": "cluster.local",
    "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%", "memory.available": "50Mi"},
}
# Both ends of a connection may be on the one bridge: masqueraded, the answers come back through this host.
_PROXY: Final = {
    "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
    "kind": "KubeProxyConfiguration",
    "mode": "iptables",
    "clusterCIDR": PODS,
    "hostnameOverride": NODE,
    "iptables": {"masqueradeAll": True},
    "conntrack": {"maxPerCore": 0, "min": 0},
}
_NAMES: Final = """.:53 {{
  bind {address}
  kubernetes cluster.local {{
    kubeconfig {kubeconfig}
  }}
  errors
}}
"""


def missing() -> str:
    """What this machine lacks, in a sentence; empty where it lacks nothing."""
    if os.geteuid():
        return "a Kubernetes of one node needs root"
    lacking = [package for program, package in PACKAGES.items() if shutil.which(program) is None]
    if lacking:
        return f"needs packages: apt-get install --no-install-recommends {' '.join(lacking)}"
    if not (BINARIES / "helm").exists():
        return f"needs Kubernetes: {HERE / 'build.sh'} {BINARIES}"
    return ""


class Cluster:
    def __init__(self) -> None:
        # Not among pytest's: it would stumble over what is mounted.
        self.directory = directory = Path(tempfile.mkdtemp(prefix="kubernetes-", dir="/var/tmp"))
        self._etcd_port, self._etcd_peer_port, self._port = free_ports(3)
        self._socket = directory / "containerd.sock"
        self._kubeconfig = directory / "kubeconfig"
        self._servers: list[Server] = []
        self.address = f"https://{NODE_ADDRESS}:{self._port}"
        self.certificate = directory / "keys/apiserver.crt"
        self.token = os.urandom(16).hex()  # of an administrator

    # --- starting and stopping

    def start(self) -> None:
        self._take_address()
        self._start_api()
        self._start_node()
        wait_for(self._has_node)
        for server in self._servers:
            assert server.running, f"{server.name} has ended:\n{server.log_tail()}"

    def _start_api(self) -> None:
        etcd, peers = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._etcd_peer_port}"
        self._run(
            "etcd",
            "/usr/bin/etcd",
            "--data-dir",
            f"{self.directory}/etcd",
            "--unsafe-no-fsync",
            "--listen-client-urls",
            etcd,
            "--advertise-client-urls",
            etcd,
            "--listen-peer-urls",
            peers,
            "--initial-advertise-peer-urls",
            peers,
            "--initial-cluster",
            f"default={peers}",
        )
        keys = self.certificate.parent
        keys.mkdir()
        private, public, tokens = keys / "accounts.key", keys / "accounts.pub", keys / "tokens.csv"
        subprocess.run(["openssl", "genrsa", "-out", private, "2048"], check=True, capture_output=True)
        subprocess.run(["openssl", "rsa", "-in", private, "-pubout", "-out", public], check=True, capture_output=True)
        tokens.write_text(f"{self.token},admin,admin,system:masters\n")
        api = self._run(
            "kube-apiserver",
            BINARIES / "kube-apiserver",
            "--etcd-servers",
            etcd,
            "--bind-address",
            NODE_ADDRESS,
            "--advertise-address",
            NODE_ADDRESS,
            "--secure-port",
            str(self._port),
            "--cert-dir",
            str(keys),
            "--token-auth-file",
            str(tokens),
            "--service-account-issuer",
            "https://kubernetes.default.svc",
            "--service-account-key-file",
            str(public),
            "--service-account-signing-key-file",
            str(private),
            "--authorization-mode",
            "Node,RBAC",
            "--allow-privileged",
            "--service-cluster-ip-range",
            SERVICES,
            "--runtime-config",
            "admissionregistration.k8s.io/v1beta1=true",
            "--kubelet-preferred-address-types",
            "InternalIP",
        )
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "this",
            "clusters": [{"name": "this", "cluster": {"server": self.address, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "this", "context": {"cluster": "this", "user": "admin"}}],
        }
        self._kubeconfig.write_text(yaml.safe_dump(config))
        api.wait_until(self._is_ready, 120)
        controllers = ("--service-account-private-key-file", str(private), "--root-ca-file", str(self.certificate))
        alone = ("--kubeconfig", str(self._kubeconfig), "--leader-elect=false", "--bind-address", "127.0.0.1")
        self._run("kube-controller-manager", BINARIES / "kube-controller-manager", *alone, *controllers)
        self._run("kube-scheduler", BINARIES / "kube-scheduler", *alone)

    def _is_ready(self) -> bool:
        return self._ask("kubectl", ("get", "--raw", "/readyz"), "", 10, (0, 1)) == "ok"

    def _has_node(self) -> bool:
        nodes = self.items("node")
        return bool(nodes) and any(
            one["type"] == "Ready" and one["status"] == "True" for one in nodes[0]["status"]["conditions"]
        )

    def _take_address(self) -> None:
        """The node's: for the API, the kubelet and the name server, which pods are to reach."""
        if subprocess.run(["ip", "link", "show", "kubernetes1"], capture_output=True, check=False).returncode:
            for command in (
                "link add kubernetes1 type bridge",
                f"addr add {NODE_ADDRESS}/32 dev kubernetes1",
                "link set kubernetes1 up",
            ):
                subprocess.run(["ip", *command.split()], check=True)

    def _start_node(self) -> None:
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        self._keep_pods_in("-I")
        (self.directory / "network").mkdir()
        self._write("network/pods.conflist", _NETWORK)
        containerd = self.directory / "containerd.toml"
        containerd.write_text(_CONTAINERD.format(root=self.directory, socket=self._socket, pause=PAUSE))
        runtime = self._run("containerd", "containerd", "-c", str(containerd))
        runtime.wait_until(self._socket.exists, 30)
        self._make_pause()
        kubelet = {**_KUBELET, "containerRuntimeEndpoint": f"unix://{self._socket}"}
        self._run(
            "kubelet",
            BINARIES / "kubelet",
            "--config",
            self._write("kubelet.yaml", kubelet),
            "--kubeconfig",
            str(self._kubeconfig),
            "--root-dir",
            f"{self.directory}/kubelet",
            "--hostname-override",
            NODE,
            "--node-ip",
            NODE_ADDRESS,
        )
        health, metrics = (f"127.0.0.1:{port}" for port in free_ports(2))
        connection = {"kubeconfig": str(self._kubeconfig)}
        proxy = {**_PROXY, "clientConnection": connection, "healthzBindAddress": health, "metricsBindAddress": metrics}
        self._run("kube-proxy", BINARIES / "kube-proxy", "--config", self._write("proxy.yaml", proxy))
        names = self.directory / "Corefile"
        names.write_text(_NAMES.format(address=NODE_ADDRESS, kubeconfig=self._kubeconfig))
        self._run("coredns", BINARIES / "coredns", "-conf", str(names))

    def _keep_pods_in(self, how: str) -> None:
        for rule in (["!", "-o", BRIDGE, "-j", "DROP"], ["-o", BRIDGE, "-j", "ACCEPT"]):
            subprocess.run(["iptables", how, "FORWARD", "-i", BRIDGE, *rule], check=how == "-I", capture_output=True)

    def _make_pause(self) -> None:
        """What holds a pod's network: a program that waits for its end."""
        at = self.directory / "pause"
        at.mkdir()
        (at / "main.go").write_text(
            'package main\n\nimport (\n\t"os"\n\t"os/signal"\n\t"syscall"\n)\n\nfunc main() {\n'
            "\tended := make(chan os.Signal, 1)\n\tsignal.Notify(ended, syscall.SIGTERM, "
            "syscall.SIGINT)\n\t<-ended\n}\n"
        )
        subprocess.run(
            ["go", "build", "-o", "pause", "main.go"], cwd=at, check=True, env={**os.environ, "CGO_ENABLED": "0"}
        )
        (at / "Dockerfile").write_text('FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n')
        docker("build", "-q", "-t", "pause:1", str(at))
        self.load("pause:1")

    def load(self, image: str) -> None:
        """Give the node an image of this machine's Docker engine."""
        saved = subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE)
        subprocess.run(
            ["ctr", "-a", self._socket, "-n", "k8s.io", "images", "import", "-"],
            stdin=saved.stdout,
            check=True,
            capture_output=True,
        )
        assert saved.wait() == 0

    def stop(self) -> None:
        with contextlib.suppress(
            RuntimeError, AssertionError, OSError, subprocess.SubprocessError
        ):  # whatever was started is to end
            for kind in ("statefulset", "pod"):
                self.kubectl("delete", kind, "--all", "--all-namespaces", "--grace-period=0", "--force", "--wait=false")
            wait_for(lambda: not self._containers())
        for server in reversed(self._servers):
            server.stop()
        self._keep_pods_in("-D")
        subprocess.run([BINARIES / "kube-proxy", "--cleanup"], capture_output=True, check=False)
        for bridge in (BRIDGE, "kubernetes1"):
            subprocess.run(["ip", "link", "del", bridge], capture_output=True, check=False)
        mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for place in sorted((one for one in mounted if one.startswith(f"{self.directory}/")), reverse=True):
            subprocess.run(["umount", "--lazy", place], capture_output=True, check=False)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _containers(self) -> str:
        command: list[str | Path] = ["ctr", "-a", self._socket, "-n", "k8s.io", "tasks", "ls", "-q"]
        return str(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    def _run(self, name: str, *command: str | Path) -> Server:
        server = Server(name, [str(part) for part in command], self.directory / f"{name}.log")
        self._servers.append(server)
        return server

    def _write(self, name: str, content: Mapping[str, Any]) -> str:
        path = self.directory / name
        path.write_text(json.dumps(content))
        return str(path)

    # --- asking

    def kubectl(self, *arguments: str, given: str = "", seconds: float = 120) -> str:
        return self._ask("kubectl", arguments, given, seconds)

    def helm(self, *arguments: str, seconds: float = 300) -> str:
        return self._ask("helm", arguments, "", seconds)

    def apply(self, *documents: Mapping[str, Any]) -> None:
        self.kubectl("apply", "--validate=strict", "-f", "-", given=yaml.safe_dump_all(documents))

    def get(self, kind: str, name: str, namespace: str = "default") -> Any:
        return json.loads(self.kubectl("get", kind, name, "-n", namespace, "-o", "json"))

    def items(self, kind: str, *options: str) -> list[Any]:
        found: list[Any] = json.loads(self.kubectl("get", kind, *options, "-o", "json"))["items"]
        return found

    def phase(self, pod: str, namespace: str) -> str:
        return str(self.get("pod", pod, namespace)["status"]["phase"])

    def wait(self, what: str, namespace: str, *pods: str, seconds: float = 180) -> None:
        """`what` is a condition, as in condition=Ready."""
        try:
            self.kubectl(
                "wait", f"--for={what}", f"--timeout={seconds:.0f}s", "-n", namespace, *pods, seconds=seconds + 30
            )
        except RuntimeError as failure:
            raise RuntimeError(f"{failure}\n{self.told(namespace)}") from failure

    def told(self, namespace: str) -> str:
        """What a person would look at when something does not start."""
        said = [
            self.kubectl("get", "pods", "-n", namespace, "-o", "wide"),
            self.kubectl("get", "events", "-n", namespace)[-4_000:],
        ]
        for pod in self.items("pod", "-n", namespace):
            for one in [*pod["status"].get("initContainerStatuses", ()), *pod["status"].get("containerStatuses", ())]:
                logs = self._ask(
                    "kubectl",
                    ("logs", pod["metadata"]["name"], "-n", namespace, "-c", one["name"], "--tail=30"),
                    "",
                    30,
                    (0, 1),
                )
                said.append(f"--- {pod['metadata']['name']} {one['name']}\n{logs}")
        return "\n".join(said)

    def _ask(
        self, program: str, arguments: Sequence[str], given: str, seconds: float, expected: Sequence[int] = (0,)
    ) -> str:
        environment = {**os.environ, "KUBECONFIG": str(self._kubeconfig)}
        done = subprocess.run(
            [BINARIES / program, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=seconds,
            env=environment,
            check=False,
        )
        if done.returncode not in expected:
            raise RuntimeError(
                f"{program} {' '.join(arguments)} ended with "
                f"{done.returncode}:\n{done.stdout[-4_000:]}\n{done.stderr[-4_000:]}"
            )
        return done.stdout


def waiting(question: Callable[[], bool], seconds: float, told: Callable[[], str]) -> None:
    """Wait for it; where it does not come, the failure ends with what `told` has to say."""
    try:
        wait_for(question, seconds)
    except AssertionError as failure:
        raise AssertionError(told()) from failure
