"""What no schema says of the files in deploy/: that names lead to something, that nobody runs with more rights than needed, and that who reads
and who writes are those whom the documents promise. Prints what is wrong, a line each; the exit status says whether anything is.

    python scripts/check-deploy.py [--filled FILE]     # also writes the compose file with the example's values in place of its variables
"""

import json
import pathlib
import re
import sys

import yaml

DEPLOY = pathlib.Path(__file__).resolve().parent.parent / "deploy"
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")
USER = 10001

wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


def labels_fit(selector, labels):
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def manifests():
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            yield path.name, document


def containers_are_bound(name, pod):
    context = pod.get("securityContext", {})
    check(context.get("runAsNonRoot") is True and context.get("runAsUser") == USER, f"{name}: may run as root")
    check(context.get("fsGroup") == USER, f"{name}: its volumes are not its own")
    check(context.get("seccompProfile", {}).get("type") == "RuntimeDefault", f"{name}: no seccomp profile")
    check(pod.get("automountServiceAccountToken") is False, f"{name}: has a token of the cluster")
    # 5 s before SIGTERM, and the server's own 10 s and some.
    check(pod.get("terminationGracePeriodSeconds", 30) >= 30, f"{name}: is killed before it can end")
    for container in pod["containers"] + pod.get("initContainers", []):
        own = container.get("securityContext", {})
        check(own.get("allowPrivilegeEscalation") is False, f"{name}: may get more rights")
        check(own.get("readOnlyRootFilesystem") is True, f"{name}: its root file system can be written")
        check(own.get("capabilities", {}).get("drop") == ["ALL"], f"{name}: has capabilities")
        check("memory" in container.get("resources", {}).get("limits", {}), f"{name}: has no limit of memory")
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            get = container.get(probe, {}).get("httpGet", {})
            ports = {port["name"] for port in container.get("ports", [])}
            check(get.get("path") == "/health" and get.get("port") in ports, f"{name}: {probe} asks nothing")
            has_tls = "--tls-certificate" in container["args"]
            check(get.get("scheme", "HTTP") == ("HTTPS" if has_tls else "HTTP"), f"{name}: {probe} speaks another protocol")


def bytes_of(text):
    """40G as orrery has it, 60Gi as Kubernetes has it: both powers of 1,024."""
    number, unit = re.fullmatch(r"([0-9.]+)([KMGT])i?", text).groups()
    return float(number) * 1024 ** (1 + "KMGT".index(unit))


def kubernetes():
    documents = list(manifests())
    named = {(it["kind"], it["metadata"]["name"]): it for _, it in documents}
    check(len(named) == len(documents), "two manifests of one name")
    for file, it in documents:
        check("namespace" not in it["metadata"], f"{file}: names a namespace")
    sets = [it for (kind, _), it in named.items() if kind == "StatefulSet"]
    pods = [it["spec"]["template"]["metadata"]["labels"] for it in sets]
    for (kind, name), it in named.items():
        spec = it.get("spec", {})
        selector = {
            "Service": lambda: spec["selector"],
            "PodDisruptionBudget": lambda: spec["selector"]["matchLabels"],
            "NetworkPolicy": lambda: spec["podSelector"]["matchLabels"],
        }.get(kind)
        if selector:
            check(any(labels_fit(selector(), pod) for pod in pods), f"{kind} {name}: selects no pod")
    cache_size = bytes_of(named["ConfigMap", "orrery"]["data"]["ORRERY_CACHE_SIZE"])
    for it in sets:
        name, spec = it["metadata"]["name"], it["spec"]
        template = spec["template"]
        check(labels_fit(spec["selector"]["matchLabels"], template["metadata"]["labels"]), f"{name}: does not select its own pods")
        check(sum(labels_fit(spec["selector"]["matchLabels"], pod) for pod in pods) == 1, f"{name}: selects pods of others")
        check(("Service", spec["serviceName"]) in named, f"{name}: its service is not there")
        pod = template["spec"]
        containers_are_bound(name, pod)
        volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
        claims = {claim["metadata"]["name"]: claim for claim in spec.get("volumeClaimTemplates", [])}
        for volume in volumes.values():
            if "secret" in volume:
                check(("Secret", volume["secret"]["secretName"]) in named, f"{name}: the secret of {volume['name']} is not there")
        for container in pod["containers"]:
            for source in container.get("envFrom", []):
                for kind, field in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
                    if field in source:
                        check((kind, source[field]["name"]) in named, f"{name}: {kind} {source[field]['name']} is not there")
            for mount in container["volumeMounts"]:
                check(mount["name"] in volumes or mount["name"] in claims, f"{name}: no volume {mount['name']}")
        room = bytes_of(claims["cache"]["spec"]["resources"]["requests"]["storage"])
        check(room > 1.2 * cache_size, f"{name}: the cache leaves no room on its volume")
    writers = [it for it in sets if "--read-only" not in it["spec"]["template"]["spec"]["containers"][0]["args"]]
    check(len(writers) == 1 and writers[0]["spec"]["replicas"] == 1, "Kubernetes: not one writer")
    check(all(labels_fit({"orrery-client": "true"}, pod) is False for pod in pods), "a server is a client")


def compose(filled_path):
    text = (DEPLOY / "compose/compose.yaml").read_text()
    lines = (DEPLOY / "compose/example.env").read_text().splitlines()
    example = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    used = {name for name, _, _ in VARIABLE.findall(text)}
    required = {name for name, kind, _ in VARIABLE.findall(text) if kind != "-"}
    for name in sorted(required - example.keys()):
        check(False, f"example.env does not have {name}")
    for name in sorted(example.keys() - used):
        check(False, f"example.env has {name}, which nobody reads")
    filled = VARIABLE.sub(lambda found: example.get(found[1], found[3] if found[2] == "-" else ""), text)
    services = yaml.safe_load(filled)["services"]
    for name, service in services.items():
        check(service.get("read_only") is True, f"{name}: its root file system can be written")
        check(service.get("cap_drop") == ["ALL"], f"{name}: has capabilities")
        check("no-new-privileges:true" in service.get("security_opt", []), f"{name}: may get more rights")
        for port in service.get("ports", []):
            check(str(port).startswith("127.0.0.1:"), f"{name}: others than this machine reach {port}")
        for other in service.get("depends_on", {}):
            check(other in services, f"{name}: waits for {other}, who is not there")
    servers = {name: it for name, it in services.items() if "serve" in it.get("command", [])}
    writers = [name for name, it in servers.items() if "--read-only" not in it["command"]]
    check(writers == ["writer"], f"compose: writers are {writers}")
    check(len(servers) == 3, "compose: not one that writes and two that follow")
    caches = [volume for it in servers.values() for volume in it.get("volumes", []) if volume.endswith(":/cache")]
    check(len(set(caches)) == len(servers), "compose: servers share a cache")
    for name, it in servers.items():
        check("healthcheck" in it, f"{name}: nobody looks whether it is well")
    if filled_path:
        # Paths in it are those of the original.
        folder = DEPLOY / "compose"
        filled = re.sub(r"(?m)^(\s+(?:- |context: ))(\.\.?/)", lambda found: f"{found[1]}{folder}/{found[2]}", filled)
        pathlib.Path(filled_path).write_text(filled)


def policies():
    for path in sorted((DEPLOY / "policies").glob("*.json")):
        statements = json.loads(path.read_text())["Statement"]
        putting = [it["Resource"] for it in statements if "s3:PutObject" in it["Action"]]
        only = "shop/readers/*" if path.stem == "reader" else "shop/*"
        check(putting == [[f"arn:aws:s3:::orrery/{only}"]], f"{path.name}: lets put {putting}")
        # With a condition on the prefix S3 answers 403 for an object that is not there, which followers ask for every second.
        listing = [it for it in statements if "s3:ListBucket" in it["Action"]]
        check(len(listing) == 1 and "Condition" not in listing[0], f"{path.name}: does not tell what is missing from what is forbidden")


kubernetes()
compose(sys.argv[2] if sys.argv[1:2] == ["--filled"] else None)
policies()
for line in wrong:
    print(line)
sys.exit(bool(wrong))
