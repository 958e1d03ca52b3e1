"""Reads YAML documents from stdin, checks them as manifests against the schemas of the Kubernetes releases that are named
as arguments, and prints them as JSON. Kinds that others define have no schema there; they are passed on unchecked."""

import json
import sys

import yaml

OTHERS = ("cert-manager.io/", "gateway.networking.k8s.io/", "monitoring.coreos.com/")


class Loader(yaml.SafeLoader):
    """Refuses what YAML lets pass and Kubernetes does not: a key that is written twice."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.YAMLError(f"written twice: {sorted(twice)}{node.start_mark}")
        return super().construct_mapping(node, deep)


def check(documents, releases):
    # Costs more than all the rest, and is asked for once.
    import kubernetes_validate

    for document in documents:
        for release in releases:
            if document["apiVersion"].startswith(OTHERS):
                continue
            try:
                kubernetes_validate.validate(document, release, strict=True)
            except kubernetes_validate.ValidationError as error:
                where = "/".join(str(part) for part in error.path)
                name = f"{document['kind']}/{document['metadata']['name']}"
                sys.exit(f"{name}: Kubernetes {release} refuses {where}: {error.message}")


def main():
    documents = [document for document in yaml.load_all(sys.stdin, Loader) if document]
    if sys.argv[1:]:
        check(documents, sys.argv[1:])
    json.dump(documents, sys.stdout)


main()
