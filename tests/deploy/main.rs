//! The files in `deploy/`: manifests that can be read, that fit together, and whose options the binary has.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use yaml_rust2::{Yaml, YamlLoader};

#[test]
fn the_manifests_hold_what_a_cluster_needs() {
    let kinds: Vec<String> = manifests().iter().map(|it| text(&it["kind"])).collect();
    let needed = [
        "ConfigMap",
        "Deployment",
        "Fleet",
        "FleetAutoscaler",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    ];
    for kind in needed {
        assert!(kinds.iter().any(|it| it == kind), "no {kind} in {kinds:?}");
    }
    let scaler = only("FleetAutoscaler");
    let fleet = only("Fleet");
    assert_eq!(scaler["spec"]["fleetName"], fleet["metadata"]["name"]);
    for manifest in manifests() {
        let namespace = text(&manifest["metadata"]["namespace"]);
        let expected = if manifest["kind"] == Yaml::String("Namespace".to_owned()) {
            ""
        } else {
            "muse"
        };
        assert_eq!(namespace, expected, "{manifest:?}");
    }
}

#[test]
fn the_binary_has_every_option_that_a_manifest_gives_it() {
    for container in [
        container(&named("Deployment", "muse-master")),
        game_container(),
    ] {
        let arguments = texts(&container["args"]);
        let (command, options) = arguments.split_first().expect("a command");
        let help = help(command);
        for option in options {
            let (name, _) = option.split_once('=').unwrap_or((option.as_str(), ""));
            // The options of a cluster exist if the binary was built with that feature.
            let cluster = name.starts_with("--agones") || name.starts_with("--nats");
            let built = cfg!(feature = "agones") || !cluster;
            assert!(!built || help.contains(name), "{command} has no {name}");
        }
    }
}

#[test]
fn the_units_start_commands_that_the_binary_has_with_the_options_of_their_file() {
    let folder = root().join("deploy/systemd");
    let mut muse = Command::new(env!("CARGO_BIN_EXE_muse"));
    muse.args(["config", "check"]).arg(folder.join("muse.toml"));
    assert!(muse.status().expect("it runs").success());
    for name in ["master", "relay"] {
        let file = folder.join(format!("muse-{name}.service"));
        let unit = std::fs::read_to_string(file).expect("a unit");
        let line = unit.lines().find_map(|it| it.strip_prefix("ExecStart="));
        let words: Vec<&str> = line.expect("a command").split(' ').collect();
        assert_eq!(words[..2], ["/usr/bin/muse", "--config"]);
        assert_eq!(words[2..4], ["/etc/muse/muse.toml", name]);
        let help = help(name);
        for option in words[4..].iter().filter(|it| it.starts_with("--")) {
            assert!(help.contains(option), "{name} has no {option}");
        }
    }
}

#[test]
fn masters_and_game_servers_agree() {
    let master = container(&named("Deployment", "muse-master"));
    let options = texts(&master["args"]);
    let fleet = only("Fleet");
    let labels = &fleet["spec"]["template"]["metadata"]["labels"];
    let option = |name: &str| options.iter().find_map(|it| it.strip_prefix(name));
    assert_eq!(
        option("--agones-game="),
        Some(text(&labels["muse.dev/game"]).as_str())
    );
    assert_eq!(
        option("--region="),
        Some(text(&labels["muse.dev/region"]).as_str())
    );
    let namespace = text(&fleet["metadata"]["namespace"]);
    assert_eq!(option("--agones-namespace="), Some(namespace.as_str()));
    // Both have the fleet's key from the same secret, and none stands in a manifest.
    let game = game_container();
    assert_eq!(
        variable(&master, "MUSE_FLEET_KEY"),
        variable(&game, "MUSE_FLEET_KEY")
    );
    for name in [
        "MUSE_FLEET_KEY",
        "MUSE_MASTER_DATABASE",
        "MUSE_MASTER_NATS",
        "MUSE_OPERATOR_PASSWORD",
    ] {
        let found = variable(&master, name).expect("set");
        assert!(!found["valueFrom"]["secretKeyRef"].is_badvalue(), "{name}");
    }
    // The port that is listened at is the one that Agones opens.
    let port = variable(&game, "MUSE_SERVER_PORT").expect("set");
    let opened = fleet["spec"]["template"]["spec"]["ports"][0]["containerPort"].as_i64();
    assert_eq!(text(&port["value"]).parse().ok(), opened);
    // The fleets' servers reach the service where the masters listen.
    let service = named("Service", "muse-master");
    let url = variable(&game, "MUSE_MASTER").expect("set");
    let expected = format!(
        "wss://{}.{}:{}",
        text(&service["metadata"]["name"]),
        text(&service["metadata"]["namespace"]),
        service["spec"]["ports"][0]["port"]
            .as_i64()
            .expect("a port"),
    );
    assert_eq!(text(&url["value"]), expected);
}

/// Comments count too: they are what an operator copies.
#[test]
fn every_url_is_tls() {
    let mut seen = BTreeSet::new();
    for (file, text) in files() {
        for (at, _) in text.match_indices("://") {
            let begin = text[..at].rfind(|it: char| !it.is_ascii_alphanumeric());
            let scheme = &text[begin.map_or(0, |begin| begin + 1)..at];
            let rest = text[at..].split_whitespace().next().unwrap_or_default();
            let is_secure = match scheme {
                "https" | "tls" | "wss" => true,
                "postgres" => rest.ends_with("?sslmode=verify-full"),
                _ => false,
            };
            assert!(is_secure, "{file}: {scheme}{rest}");
            seen.insert(scheme.to_owned());
        }
    }
    let expected = ["https", "postgres", "tls", "wss"].map(str::to_owned);
    assert_eq!(seen, BTreeSet::from(expected));
}

/// Each end of a connection has the files that TLS needs: masters a certificate and the authorities of what they connect to, game servers the masters'
/// authority and no key.
#[test]
fn each_hop_has_its_certificates() {
    let deployment = named("Deployment", "muse-master");
    let master = container(&deployment);
    for option in [
        "--tls-cert=",
        "--tls-key=",
        "--database-ca=",
        "--nats-ca=",
        "--agones-cert=",
        "--agones-key=",
        "--agones-ca=",
    ] {
        let options = texts(&master["args"]);
        let file = options.iter().find_map(|it| it.strip_prefix(option));
        let file = file.unwrap_or_else(|| unreachable!("no {option}"));
        assert!(is_mounted(&master, file), "{option}{file}");
    }
    for probe in ["readinessProbe", "livenessProbe"] {
        let scheme = text(&master[probe]["httpGet"]["scheme"]);
        assert_eq!(scheme, "HTTPS", "{probe}");
    }
    let game = game_container();
    let authority = variable(&game, "MUSE_MASTER_CA").expect("set");
    assert!(is_mounted(&game, &text(&authority["value"])));
    let template = &only("Fleet")["spec"]["template"]["spec"]["template"];
    let volumes = template["spec"]["volumes"].as_vec().expect("volumes");
    let secret = volumes.iter().find(|it| !it["secret"].is_badvalue());
    assert_eq!(secret, None, "a game server has no key of anybody");
    // The bus takes nobody without TLS and a password.
    let bus = text(&only("ConfigMap")["data"]["nats.conf"]);
    for part in ["tls {", "authorization {", "password: $NATS_PASSWORD"] {
        assert!(bus.contains(part), "no {part} in {bus}");
    }
}

/// Whatever is not allowed is forbidden, and every workload is allowed something.
#[test]
fn each_workload_has_a_policy_and_the_rest_is_closed() {
    let policies = all("NetworkPolicy");
    let closed = policies.iter().find(|it| {
        let selector = &it["spec"]["podSelector"];
        selector.as_hash().is_some_and(|it| it.is_empty())
    });
    let closed = closed.expect("one for all pods");
    assert!(closed["spec"]["ingress"].is_badvalue() && closed["spec"]["egress"].is_badvalue());
    for policy in &policies {
        let kinds = texts(&policy["spec"]["policyTypes"]);
        assert_eq!(kinds, ["Ingress", "Egress"], "{policy:?}");
        // A rule without a peer is for everybody: only players are.
        for rule in policy["spec"]["egress"].as_vec().into_iter().flatten() {
            assert!(!rule["to"].is_badvalue() && !rule["ports"].is_badvalue());
        }
    }
    let fleet = only("Fleet")["spec"]["template"]["spec"].clone();
    let workloads = all("Deployment").into_iter().map(|it| it["spec"].clone());
    for workload in workloads.chain([fleet]) {
        let app = text(&workload["template"]["metadata"]["labels"]["app"]);
        policy_of(&app);
    }
}

/// The connections that the manifests name are the ones that the policies allow, at both ends.
#[test]
fn the_policies_allow_the_hops_that_exist() {
    let tcp = |port| ("TCP".to_owned(), port);
    let service = |name: &str| {
        let port = named("Service", name)["spec"]["ports"][0]["port"].as_i64();
        tcp(port.expect("a port"))
    };
    let (master, nats) = (service("muse-master"), service("nats"));
    for (from, to, port) in [
        ("biobot", "muse-master", &master),
        ("muse-master", "nats", &nats),
    ] {
        let out = peers(&policy_of(from), "egress", "to");
        assert!(out.contains(&(to.to_owned(), port.clone())), "{from}");
        let into = peers(&policy_of(to), "ingress", "from");
        assert!(into.contains(&(from.to_owned(), port.clone())), "{to}");
    }
    let out = peers(&policy_of("muse-master"), "egress", "to");
    assert!(out.contains(&("postgres".to_owned(), tcp(5_432))));
    // The bus talks to nobody by itself, and nobody but masters talks to it.
    assert_eq!(peers(&policy_of("nats"), "egress", "to"), []);
    let into = peers(&policy_of("nats"), "ingress", "from");
    assert_eq!(into, [("muse-master".to_owned(), nats)]);
    // Players reach the port that Agones opens.
    let opened = &only("Fleet")["spec"]["template"]["spec"]["ports"][0]["containerPort"];
    let open = policy_of("biobot")["spec"]["ingress"][0].clone();
    assert!(open["from"].is_badvalue());
    for port in open["ports"].as_vec().expect("ports") {
        assert_eq!(&port["port"], opened);
    }
}

#[test]
fn a_master_may_do_in_the_cluster_what_it_does_and_no_more() {
    let role = only("Role");
    let rules = role["rules"].as_vec().expect("rules");
    assert_eq!(rules.len(), 1);
    assert_eq!(texts(&rules[0]["apiGroups"]), ["agones.dev"]);
    assert_eq!(texts(&rules[0]["resources"]), ["gameservers"]);
    let verbs: BTreeSet<String> = texts(&rules[0]["verbs"]).into_iter().collect();
    let needed = ["delete", "get", "list", "watch"].map(str::to_owned);
    assert_eq!(verbs, BTreeSet::from(needed));
}

#[test]
fn the_dashboard_shows_figures_that_masters_have() {
    let file = root().join("deploy/grafana/muse-master.json");
    let dashboard = std::fs::read_to_string(file).expect("a dashboard");
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).expect("JSON");
    let mut shown = BTreeSet::new();
    collect(&dashboard, &mut shown);
    assert!(!shown.is_empty());
    let page = std::fs::read_to_string(root().join("docs/operations.md")).expect("a page");
    for name in shown {
        assert!(page.contains(&name), "docs/operations.md lacks {name}");
    }
}

/// Names of figures in the expressions of a dashboard.
fn collect(value: &serde_json::Value, names: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            if let Some(expression) = fields.get("expr").and_then(|it| it.as_str()) {
                let words = expression.split(|it: char| !it.is_alphanumeric() && it != '_');
                let ours = words.filter(|word| word.starts_with("muse_"));
                let ending = |word: &str| {
                    let cut = ["_count", "_sum"]
                        .iter()
                        .find_map(|it| word.strip_suffix(it));
                    cut.unwrap_or(word).to_owned()
                };
                names.extend(ours.map(ending));
            }
            fields.values().for_each(|it| collect(it, names));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|it| collect(it, names)),
        _ => {}
    }
}

/// Names and texts of all manifests.
fn files() -> Vec<(String, String)> {
    let folder = std::fs::read_dir(root().join("deploy/kubernetes")).expect("a folder");
    let read = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(entry.path()).expect("a file"))
    };
    let mut files: Vec<_> = folder.flatten().map(read).collect();
    files.sort_unstable();
    files
}

fn manifests() -> Vec<Yaml> {
    let read = |(_, text): (String, String)| YamlLoader::load_from_str(&text).expect("YAML");
    files().into_iter().flat_map(read).collect()
}

fn all(kind: &str) -> Vec<Yaml> {
    let mut found = manifests();
    found.retain(|it| text(&it["kind"]) == kind);
    found
}

fn only(kind: &str) -> Yaml {
    let mut found = all(kind);
    assert_eq!(found.len(), 1, "{kind}");
    found.remove(0)
}

fn named(kind: &str, name: &str) -> Yaml {
    let mut found = all(kind);
    found.retain(|it| text(&it["metadata"]["name"]) == name);
    assert_eq!(found.len(), 1, "{kind} {name}");
    found.remove(0)
}

/// The policy of the pods with this label.
fn policy_of(app: &str) -> Yaml {
    let mut found = all("NetworkPolicy");
    found.retain(|it| text(&it["spec"]["podSelector"]["matchLabels"]["app"]) == app);
    assert_eq!(found.len(), 1, "policies of {app}");
    found.remove(0)
}

/// The pods of this namespace that a policy allows in one direction, with protocol and port.
fn peers(policy: &Yaml, direction: &str, side: &str) -> Vec<(String, (String, i64))> {
    let mut found = Vec::new();
    for rule in policy["spec"][direction].as_vec().into_iter().flatten() {
        for peer in rule[side].as_vec().into_iter().flatten() {
            let app = text(&peer["podSelector"]["matchLabels"]["app"]);
            for port in rule["ports"].as_vec().into_iter().flatten() {
                let number = port["port"].as_i64().expect("a number");
                found.push((app.clone(), (text(&port["protocol"]), number)));
            }
        }
    }
    found.retain(|(app, _)| !app.is_empty());
    found
}

/// True if a file is below one of the container's volumes.
fn is_mounted(container: &Yaml, file: &str) -> bool {
    let mounts = container["volumeMounts"].as_vec().into_iter().flatten();
    let mut folders = mounts.map(|it| text(&it["mountPath"]));
    folders.any(|folder| file.starts_with(&format!("{folder}/")))
}

fn container(workload: &Yaml) -> Yaml {
    workload["spec"]["template"]["spec"]["containers"][0].clone()
}

fn game_container() -> Yaml {
    container(&only("Fleet")["spec"]["template"])
}

fn variable(container: &Yaml, name: &str) -> Option<Yaml> {
    let variables = container["env"].as_vec()?;
    variables
        .iter()
        .find(|it| text(&it["name"]) == name)
        .cloned()
}

fn help(command: &str) -> String {
    let mut muse = Command::new(env!("CARGO_BIN_EXE_muse"));
    let output = muse.args([command, "--help"]).output().expect("it runs");
    assert!(output.status.success(), "no {command}");
    String::from_utf8(output.stdout).expect("text")
}

fn text(value: &Yaml) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Yaml) -> Vec<String> {
    value.as_vec().into_iter().flatten().map(text).collect()
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
