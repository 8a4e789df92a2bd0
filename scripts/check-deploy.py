"""What no schema says of the files in deploy/: that names lead to something, that nobody runs with more rights than needed, that who reads
and who writes are those whom the documents promise, and that the nodes of a cluster find each other. Prints what is wrong, a line each; the exit
status says whether anything is.

    python scripts/check-deploy.py [--filled DIR]      # also writes the compose files with the example's values in place of their variables
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


def manifests(folder):
    for path in sorted((DEPLOY / folder).glob("*.yaml")):
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
        # Only of a cluster is there more to be ready than to be up.
        ready = "/health/ready" if "--cluster" in container["args"] else "/health"
        for probe, path in (("startupProbe", "/health"), ("readinessProbe", ready), ("livenessProbe", "/health")):
            get = container.get(probe, {}).get("httpGet", {})
            ports = {port["name"] for port in container.get("ports", [])}
            check(get.get("path") == path and get.get("port") in ports, f"{name}: {probe} does not ask {path}")
            has_tls = "--tls-certificate" in container["args"]
            check(get.get("scheme", "HTTP") == ("HTTPS" if has_tls else "HTTP"), f"{name}: {probe} speaks another protocol")


def bytes_of(text):
    """40G as orrery has it, 60Gi as Kubernetes has it: both powers of 1,024."""
    number, unit = re.fullmatch(r"([0-9.]+)([KMGT])i?", text).groups()
    return float(number) * 1024 ** (1 + "KMGT".index(unit))


def storage(claim):
    return bytes_of(claim["spec"]["resources"]["requests"]["storage"])


def option(arguments, name):
    """What stands behind an option."""
    return arguments[arguments.index(name) + 1] if name in arguments else None


def kubernetes(folder):
    """Checks the manifests of a folder as one whole, and gives them by kind and name."""
    documents = list(manifests(folder))
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
        for mount in (it for container in pod["containers"] for it in container["volumeMounts"] if it["name"] in claims):
            check(not mount.get("readOnly"), f"{name}: its volume {mount['name']} cannot be written")
    check(all(labels_fit({"orrery-client": "true"}, pod) is False for pod in pods), f"{folder}: a server is a client")
    return named


def over_a_bucket():
    named = kubernetes("kubernetes")
    sets = [it for (kind, _), it in named.items() if kind == "StatefulSet"]
    cache_size = bytes_of(named["ConfigMap", "orrery"]["data"]["ORRERY_CACHE_SIZE"])
    for it in sets:
        claims = {claim["metadata"]["name"]: claim for claim in it["spec"]["volumeClaimTemplates"]}
        check(storage(claims["cache"]) > 1.2 * cache_size, f"{it['metadata']['name']}: the cache leaves no room on its volume")
    writers = [it for it in sets if "--read-only" not in it["spec"]["template"]["spec"]["containers"][0]["args"]]
    check(len(writers) == 1 and writers[0]["spec"]["replicas"] == 1, "Kubernetes: not one writer")


def port_of(address):
    return address.rsplit(":", 1)[1]


def cluster():
    """The nodes find each other before they are ready, no two are on one machine, and they are stopped one at a time."""
    named = kubernetes("kubernetes/cluster")
    (it,) = [it for (kind, _), it in named.items() if kind == "StatefulSet"]
    name, spec = it["metadata"]["name"], it["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    arguments, labels = container["args"], spec["template"]["metadata"]["labels"]
    ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
    headless = named["Service", spec["serviceName"]]["spec"]
    check(headless.get("clusterIP") == "None", "the nodes have no names of their own")
    check(headless.get("publishNotReadyAddresses") is True, "nodes that are not ready have no names, so no majority is ever found")
    check(spec["podManagementPolicy"] == "Parallel", "the first node would wait for a majority that is not started")
    check(spec["updateStrategy"] == {"type": "RollingUpdate"}, "nodes are not replaced one after the other")
    configured = named["ConfigMap", name]["data"]
    peers = dict(peer.split("=", 1) for peer in configured["ORRERY_PEERS"].split(","))
    numbers = configured["ORRERY_NODES"].split()
    own = option(arguments, "--cluster-address")
    addresses = {number: own.replace("$(ORRERY_POD)", f"{name}-{at}") for at, number in enumerate(numbers)}
    check(len(numbers) == spec["replicas"] and spec["replicas"] in (3, 5), f"{spec['replicas']} pods have {len(numbers)} numbers")
    check(peers == addresses, f"the peers are {peers}, and the pods' nodes {addresses}")
    check(own.split(":")[0] == f"$(ORRERY_POD).{spec['serviceName']}", "a node's address is not its name in the headless service")
    for what in ("--cluster-address", "--cluster-listen"):
        check(port_of(option(arguments, what)) == ports["nodes"], f"{what} is not the port of the nodes")
    for what in ("--advertise", "--listen"):
        check(port_of(option(arguments, what)) == ports["https"], f"{what} is not the port of HTTP")
    check(option(arguments, "--advertise").startswith("https://$(ORRERY_POD)."), "changes are not forwarded to the node itself")
    check(any(env["name"] == "ORRERY_POD" for env in container["env"]), "a pod does not know its name")
    apart = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    apart = [term for term in apart if term["topologyKey"] == "kubernetes.io/hostname"]
    check(any(labels_fit(term["labelSelector"]["matchLabels"], labels) for term in apart), "two nodes may be on one machine")
    check(named["PodDisruptionBudget", name]["spec"].get("maxUnavailable") == 1, "maintenance may take a majority")
    # crates/orrery/src/cluster_node.rs: START_TIME_MAX; crates/server/src/first_user.rs: WAIT_MAX.
    startup = container["startupProbe"]
    check(startup["periodSeconds"] * startup["failureThreshold"] > 300 + 120, "a node is killed while it waits for a majority")
    claims = {claim["metadata"]["name"]: claim for claim in spec["volumeClaimTemplates"]}
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    check(mounted.get(option(arguments, "--db")) in claims, "a node's directory is on no volume of its own")
    check(mounted.get("/cache") in claims, "temporary files are on no volume")
    cache_size = bytes_of(option(arguments, "--cache-size"))
    check(storage(claims[mounted[option(arguments, "--db")]]) > 3 * cache_size, "the cache leaves the database no room on its volume")
    rules = named["NetworkPolicy", name]["spec"]["ingress"]
    to_nodes = [rule for rule in rules if any(port["port"] == "nodes" for port in rule["ports"])]
    selectors = [source.get("podSelector", {}).get("matchLabels") for rule in to_nodes for source in rule["from"]]
    check(bool(selectors) and all(selector and labels_fit(selector, labels) for selector in selectors), "others than nodes reach the nodes' port")


def example():
    lines = (DEPLOY / "compose/example.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def compose(file, filled_folder):
    """What is true of all compose files; gives the servers of one, and the names of its variables."""
    text = (DEPLOY / "compose" / file).read_text()
    values = example()
    used = {name for name, _, _ in VARIABLE.findall(text)}
    required = {name for name, kind, _ in VARIABLE.findall(text) if kind != "-"}
    for name in sorted(required - values.keys()):
        check(False, f"example.env does not have {name}")
    filled = VARIABLE.sub(lambda found: values.get(found[1], found[3] if found[2] == "-" else ""), text)
    document = yaml.safe_load(filled)
    services = document["services"]
    for name, service in services.items():
        check(service.get("read_only") is True, f"{name}: its root file system can be written")
        check(service.get("cap_drop") == ["ALL"], f"{name}: has capabilities")
        check("no-new-privileges:true" in service.get("security_opt", []), f"{name}: may get more rights")
        for port in service.get("ports", []):
            check(str(port).startswith("127.0.0.1:"), f"{name}: others than this machine reach {port}")
        for other in service.get("depends_on", {}):
            check(other in services, f"{name}: waits for {other}, who is not there")
        for kind, prefix in (("volumes", "volume"), ("networks", "network"), ("secrets", "secret")):
            names = [it.split(":")[0] for it in service.get(kind, []) if not it.startswith(".")]
            for missing in sorted(set(names) - set(document.get(kind, {}))):
                check(False, f"{name}: no {prefix} {missing}")
    servers = {name: it for name, it in services.items() if "serve" in it.get("command", [])}
    caches = [volume for it in servers.values() for volume in it.get("volumes", []) if volume.endswith(":/cache")]
    check(len(set(caches)) == len(servers), f"{file}: servers share a cache")
    for name, it in servers.items():
        check("healthcheck" in it, f"{name}: nobody looks whether it is well")
    if filled_folder:
        # Paths in it are those of the original.
        folder = DEPLOY / "compose"
        filled = re.sub(r"(?m)^(\s+(?:- |context: ))(\.\.?/)", lambda found: f"{found[1]}{folder}/{found[2]}", filled)
        (pathlib.Path(filled_folder) / file).write_text(filled)
    return servers, used


def composed_over_a_bucket(filled_folder):
    servers, used = compose("compose.yaml", filled_folder)
    for name in sorted(example().keys() - used):
        check(False, f"example.env has {name}, which nobody reads")
    writers = [name for name, it in servers.items() if "--read-only" not in it["command"]]
    check(writers == ["writer"], f"compose.yaml: writers are {writers}")
    check(len(servers) == 3, "compose.yaml: not one that writes and two that follow")


def composed_cluster(filled_folder):
    servers, _ = compose("cluster.yaml", filled_folder)
    check(len(servers) == 3, "cluster.yaml: not three nodes")
    nodes = {option(it["command"], "--node"): name for name, it in servers.items()}
    ports = {port_of(option(it["command"], "--cluster-listen")) for it in servers.values()}
    expected = ",".join(f"{number}={name}:{'/'.join(ports)}" for number, name in sorted(nodes.items()))
    volumes = [volume for it in servers.values() for volume in it["volumes"]]
    check(len(set(volumes)) == len(volumes) == 6, "cluster.yaml: nodes share a volume")
    for name, it in servers.items():
        command = it["command"]
        check(option(command, "--peers") == expected, f"{name}: the peers are not {expected}")
        check(option(command, "--advertise") == f"http://{name}:{port_of(option(command, '--listen'))}", f"{name}: advertises another")
        secret = option(command, "--cluster-secret-file")
        check(secret in [f"/run/secrets/{one}" for one in it["secrets"]], f"{name}: does not have {secret}")


def policies():
    for path in sorted((DEPLOY / "policies").glob("*.json")):
        statements = json.loads(path.read_text())["Statement"]
        putting = [it["Resource"] for it in statements if "s3:PutObject" in it["Action"]]
        only = "shop/readers/*" if path.stem == "reader" else "shop/*"
        check(putting == [[f"arn:aws:s3:::orrery/{only}"]], f"{path.name}: lets put {putting}")
        # With a condition on the prefix S3 answers 403 for an object that is not there, which followers ask for every second.
        listing = [it for it in statements if "s3:ListBucket" in it["Action"]]
        check(len(listing) == 1 and "Condition" not in listing[0], f"{path.name}: does not tell what is missing from what is forbidden")


filled_into = sys.argv[2] if sys.argv[1:2] == ["--filled"] else None
over_a_bucket()
cluster()
composed_over_a_bucket(filled_into)
composed_cluster(filled_into)
policies()
for line in wrong:
    print(line)
sys.exit(bool(wrong))
