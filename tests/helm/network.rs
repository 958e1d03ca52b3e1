//! Who reaches which port, and who replicas are for one another.

use serde_json::{Value, json};

use crate::chart::{EXAMPLES, LEAST, example, items, render};

/// The only pods that may speak to the port of peers.
fn replicas() -> Value {
    let labels = json!({
        "app.kubernetes.io/name": "caribou",
        "app.kubernetes.io/instance": "demo",
        "app.kubernetes.io/component": "replica",
    });
    json!([{"podSelector": {"matchLabels": labels}}])
}

fn has_port(rule: &Value, port: &str) -> bool {
    items(&rule["ports"]).any(|one| one["port"] == port)
}

#[test]
fn only_replicas_reach_the_port_of_peers() {
    for name in ["cluster", "hardened", "trial"] {
        let rendered = example(name);
        let policy = rendered.one("NetworkPolicy", "demo-caribou");
        assert_eq!(policy["spec"]["podSelector"], replicas()[0]["podSelector"], "{name}: it holds for replicas");
        let rules: Vec<_> = items(&policy["spec"]["ingress"]).filter(|rule| has_port(rule, "peers")).collect();
        assert_eq!(rules.len(), 1, "{name}");
        assert_eq!(rules[0]["from"], replicas(), "{name}");
        assert_eq!(rules[0]["ports"].as_array().unwrap().len(), 1, "{name}: nothing else comes along");
        // A rule without ports would open them all.
        assert!(items(&policy["spec"]["ingress"]).all(|rule| rule["ports"].is_array()), "{name}");
    }
}

#[test]
fn no_service_that_others_use_leads_to_the_port_of_peers() {
    for name in EXAMPLES {
        for service in example(name).of_kind("Service") {
            let leads = items(&service["spec"]["ports"]).any(|port| port["targetPort"] == "peers");
            let expected = service["metadata"]["name"] == "demo-caribou-peers";
            assert_eq!(leads, expected, "{name} {}", service["metadata"]["name"]);
            if leads {
                assert_eq!(service["spec"]["clusterIP"], "None", "{name}");
                assert_eq!(service["spec"]["publishNotReadyAddresses"], true, "{name}: one that drains still owns");
            }
        }
    }
}

#[test]
fn callers_can_be_restricted_and_so_can_what_replicas_reach() {
    let rendered = example("hardened");
    let policy = &rendered.one("NetworkPolicy", "demo-caribou")["spec"];
    let doors: Vec<_> = items(&policy["ingress"]).filter(|rule| has_port(rule, "rest")).collect();
    assert_eq!(doors.len(), 1);
    let named = &doors[0]["from"][0]["namespaceSelector"]["matchExpressions"][0]["values"];
    assert_eq!(*named, json!(["agents", "ingress-nginx", "monitoring"]), "callers, the entry and who asks for metrics");
    assert_eq!(policy["policyTypes"], json!(["Ingress", "Egress"]));
    assert!(items(&policy["egress"]).any(|rule| has_port(rule, "peers") && rule["to"] == replicas()));
    let open = example("cluster");
    assert_eq!(open.one("NetworkPolicy", "demo-caribou")["spec"]["policyTypes"], json!(["Ingress"]));
}

#[test]
fn the_databases_of_a_trial_are_for_its_replicas_alone() {
    let rendered = example("trial");
    let policy = &rendered.one("NetworkPolicy", "demo-caribou-trial")["spec"];
    assert_eq!(policy["ingress"], json!([{"from": replicas()}]));
    for kind in ["Deployment", "StatefulSet"] {
        for workload in rendered.of_kind(kind).filter(|one| one["metadata"]["name"] != "demo-caribou") {
            let labels = &workload["spec"]["template"]["metadata"]["labels"];
            assert_ne!(labels["app.kubernetes.io/component"], "replica", "no database poses as a replica");
        }
    }
}

#[test]
fn replicas_show_one_another_a_certificate_that_names_them() {
    let rendered = example("hardened");
    let certificate = &rendered.one("Certificate", "demo-caribou-peers")["spec"];
    assert_eq!(certificate["dnsNames"], json!(["demo-caribou-peers.agents.svc"]));
    for usage in ["server auth", "client auth"] {
        assert!(items(&certificate["usages"]).any(|one| one == usage), "{usage}");
    }
    let replica = &rendered.replica()["containers"][0];
    let variable = |name: &str| items(&replica["env"]).find(|one| one["name"] == name).cloned().unwrap_or_default();
    assert_eq!(variable("CARIBOU_CLUSTER_TLS_NAME")["value"], certificate["dnsNames"][0]);
    assert_eq!(variable("CARIBOU_CLUSTER_TLS_CA_FILE")["value"], "/etc/caribou/peers/ca.crt");
    assert!(variable("CARIBOU_CLUSTER_ALLOW_PLAINTEXT").is_null());
    let volumes = &rendered.replica()["volumes"];
    let peers = items(volumes).find(|volume| volume["name"] == "peers").unwrap();
    assert_eq!(peers["secret"]["secretName"], certificate["secretName"]);

    let theirs = ["peers.tls.enabled=true", "peers.tls.existingSecret=ours"];
    let rendered = render(None, &[&LEAST[..], &theirs].concat()).unwrap_or_else(|refused| panic!("{refused}"));
    assert_eq!(rendered.of_kind("Certificate").count(), 0);
    let peers = items(&rendered.replica()["volumes"]).find(|volume| volume["name"] == "peers").cloned().unwrap();
    assert_eq!(peers["secret"]["secretName"], "ours");
}

#[test]
fn replicas_are_found_by_their_own_addresses() {
    for (family, listen, advertise) in
        [("IPv4", "0.0.0.0:8751", "$(POD_IP):8751"), ("IPv6", "[::]:8751", "[$(POD_IP)]:8751")]
    {
        let family = format!("ipFamily={family}");
        let rendered = render(None, &[&LEAST[..], &[&family]].concat()).unwrap_or_else(|refused| panic!("{refused}"));
        let variables = &rendered.replica()["containers"][0]["env"];
        let at = |name: &str| items(variables).position(|one| one["name"] == name).unwrap();
        assert_eq!(variables[at("CARIBOU_CLUSTER_LISTEN")]["value"], listen);
        assert_eq!(variables[at("CARIBOU_CLUSTER_ADVERTISE")]["value"], advertise);
        assert!(at("POD_IP") < at("CARIBOU_CLUSTER_ADVERTISE"), "it is read before what is made of it");
    }
}
