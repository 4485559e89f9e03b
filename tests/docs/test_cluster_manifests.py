"""The manifests of the guide: YAML that Ray and KubeRay would take."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from paths import ROOT

yaml: Any = pytest.importorskip("yaml", reason="needs PyYAML")
jsonschema: Any = pytest.importorskip("jsonschema", reason="needs jsonschema")

FOLDER = ROOT / "docs" / "guides" / "cluster"
TEXTS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
QUANTITY = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?(m|[KMGT]i?)?$"}

NODE_TYPE = {
    "type": "object",
    "required": ["node_config", "min_workers", "max_workers"],
    "additionalProperties": False,
    "properties": {
        "node_config": {"type": "object", "required": ["InstanceType"]},
        "resources": {"type": "object", "additionalProperties": {"type": "number"}},
        "min_workers": {"type": "integer", "minimum": 0},
        "max_workers": {"type": "integer", "minimum": 0},
    },
}
RAY_CLUSTER = {
    "type": "object",
    "required": ["cluster_name", "provider", "auth", "available_node_types", "head_node_type"],
    "additionalProperties": False,
    "properties": {
        "cluster_name": {"type": "string"},
        "max_workers": {"type": "integer", "minimum": 0},
        "idle_timeout_minutes": {"type": "number"},
        "provider": {"type": "object", "required": ["type", "region"]},
        "auth": {"type": "object", "required": ["ssh_user"]},
        "available_node_types": {"type": "object", "additionalProperties": NODE_TYPE},
        "head_node_type": {"type": "string"},
        "setup_commands": TEXTS,
        "head_start_ray_commands": TEXTS,
        "worker_start_ray_commands": TEXTS,
    },
}

CONTAINER = {
    "type": "object",
    "required": ["name", "image", "resources"],
    "properties": {
        "image": {"type": "string", "pattern": r"^[a-z0-9./-]+:[A-Za-z0-9._-]+$"},
        "env": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "value"],
                "properties": {"value": {"type": "string"}},
            },
        },
        "resources": {
            "type": "object",
            "required": ["requests", "limits"],
            "additionalProperties": {"type": "object", "additionalProperties": QUANTITY},
        },
    },
}
TEMPLATE = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["containers"],
            "properties": {
                "containers": {"type": "array", "items": CONTAINER, "minItems": 1},
                "volumes": {"type": "array", "items": {"type": "object", "required": ["name"]}},
            },
        }
    },
}
START = {"type": "object", "additionalProperties": {"type": "string"}}
KUBERAY = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "ray.io/v1"},
        "kind": {"const": "RayCluster"},
        "metadata": {"type": "object", "required": ["name"]},
        "spec": {
            "type": "object",
            "required": ["headGroupSpec", "workerGroupSpecs"],
            "additionalProperties": False,
            "properties": {
                "rayVersion": {"type": "string"},
                "headGroupSpec": {
                    "type": "object",
                    "required": ["rayStartParams", "template"],
                    "additionalProperties": False,
                    "properties": {
                        "serviceType": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
                        "rayStartParams": START,
                        "template": TEMPLATE,
                    },
                },
                "workerGroupSpecs": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["groupName", "replicas", "rayStartParams", "template"],
                        "additionalProperties": False,
                        "properties": {
                            "groupName": {"type": "string"},
                            "replicas": {"type": "integer"},
                            "minReplicas": {"type": "integer"},
                            "maxReplicas": {"type": "integer"},
                            "rayStartParams": START,
                            "template": TEMPLATE,
                        },
                    },
                },
            },
        },
    },
}


def _read(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


def test_the_ray_cluster_has_the_fields_that_ray_up_reads():
    found = _read("ray-cluster.yaml")
    jsonschema.validate(found, RAY_CLUSTER)
    types = found["available_node_types"]
    assert found["head_node_type"] in types
    assert sum(kind["max_workers"] for kind in types.values()) <= found["max_workers"]
    assert all(kind["min_workers"] <= kind["max_workers"] for kind in types.values())
    assert any("hiernorm[ray" in command for command in found["setup_commands"])
    assert any("ray start --head" in command for command in found["head_start_ray_commands"])


def test_the_ray_cluster_is_what_ray_itself_validates():
    """The schema that `ray up` reads, where Ray is installed."""
    found = importlib.util.find_spec("ray")
    if found is None or found.origin is None:
        pytest.skip("needs hiernorm[ray]")
    schema = Path(found.origin).parent / "autoscaler" / "ray-schema.json"
    jsonschema.validate(_read("ray-cluster.yaml"), json.loads(schema.read_text(encoding="utf-8")))


def test_the_kuberay_manifest_has_the_fields_that_the_operator_reads():
    found = _read("kuberay.yaml")
    jsonschema.validate(found, KUBERAY)
    groups = [found["spec"]["headGroupSpec"], *found["spec"]["workerGroupSpecs"]]
    for group in groups:
        pod = group["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    for group in groups[1:]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


@pytest.mark.parametrize("name", ["ray-cluster.yaml", "kuberay.yaml"])
def test_a_schema_notices_a_field_that_is_misspelt(name):
    schema = RAY_CLUSTER if name.startswith("ray") else KUBERAY
    found = _read(name)
    found["metdata"] = {}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, schema)
