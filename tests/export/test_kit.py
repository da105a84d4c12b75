"""export/kit.py: texts that a server would parse, paths that fit together, files of the owner."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    json_format,
    message_factory,
    text_format,
)
from tensorflow_serving.config import model_server_config_pb2

from export.kit import BATCH_SIZES, model_name, write_kit
from export.meta_graph import read_meta_graph
from tf_transformer.errors import InputError

INT, BOOL, TEXT = "Int64Value", "BoolValue", "StringValue"
# Fields of messages that tensorflow-serving-api does not ship, from their documentation:
# tensorflow_serving/servables/tensorflow/session_bundle_config.proto and config/monitoring_config.
BATCHING = {
    "max_batch_size": INT, "batch_timeout_micros": INT, "max_enqueued_batches": INT,
    "num_batch_threads": INT, "thread_pool_name": TEXT, "allowed_batch_sizes": "int64...",
    "pad_variable_length_inputs": "bool", "enable_large_batch_splitting": BOOL,
    "max_execution_batch_size": INT,
}  # fmt: skip
PROMETHEUS = {"enable": "bool", "path": "string"}


@pytest.fixture(scope="module")
def kit(exported: Path) -> Path:
    """As the export has written it, for the model called after its folder, models0."""
    return exported.parent / "serving"


def message(name: str, fields: dict[str, str]) -> descriptor_pb2.DescriptorProto:
    types = descriptor_pb2.FieldDescriptorProto
    plain = {"bool": types.TYPE_BOOL, "string": types.TYPE_STRING, "int64": types.TYPE_INT64}
    found = descriptor_pb2.DescriptorProto(name=name)
    for number, (field, kind) in enumerate(fields.items(), 1):
        base = kind.removesuffix("...")
        added = found.field.add(name=field, number=number, label=types.LABEL_OPTIONAL)
        if base != kind:
            added.label = types.LABEL_REPEATED
        if base in plain:
            added.type = plain[base]
        else:
            wrapped = "." if base == "PrometheusConfig" else ".google.protobuf."
            added.type, added.type_name = types.TYPE_MESSAGE, wrapped + base
    return found


def parsed(path: Path, root: str) -> Any:
    """A config as protobuf's own parser of text reads it; unknown fields are errors."""
    file = descriptor_pb2.FileDescriptorProto(name="documented.proto", syntax="proto3")
    file.dependency.append("google/protobuf/wrappers.proto")
    file.message_type.append(message("PrometheusConfig", PROMETHEUS))
    file.message_type.append(message("MonitoringConfig", {"prometheus_config": "PrometheusConfig"}))
    file.message_type.append(message("BatchingParameters", BATCHING))
    wrappers = descriptor_pb2.FileDescriptorProto()
    descriptor_pool.Default().FindFileByName("google/protobuf/wrappers.proto").CopyToProto(wrappers)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(wrappers)
    pool.Add(file)
    empty = message_factory.GetMessageClass(pool.FindMessageTypeByName(root))()
    return text_format.Parse(path.read_text(), empty)


def test_models_config_is_read_by_the_servers_own_message(kit: Path) -> None:
    text = (kit / "models.config").read_text()
    found = text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
    (model,) = found.model_config_list.config
    assert (model.name, model.base_path) == (kit.parent.name, f"/models/{kit.parent.name}")
    assert model.model_platform == "tensorflow"
    assert model.model_version_policy.latest.num_versions == 1


def test_batching_config(kit: Path) -> None:
    """Sizes ascend to the largest that is run, as the server demands where batches are split."""
    found = parsed(kit / "batching.config", "BatchingParameters")
    sizes = list(found.allowed_batch_sizes)
    assert sizes == sorted(set(sizes)) == list(BATCH_SIZES)
    assert sizes[-1] == found.max_execution_batch_size.value <= found.max_batch_size.value
    assert found.enable_large_batch_splitting.value
    assert found.pad_variable_length_inputs
    assert 0 < found.batch_timeout_micros.value <= 10_000
    assert found.num_batch_threads.value >= 1 and found.max_enqueued_batches.value >= 1


def test_monitoring_config(kit: Path) -> None:
    found = parsed(kit / "monitoring.config", "MonitoringConfig").prometheus_config
    assert found.enable and found.path == "/monitoring/prometheus/metrics"


def test_a_field_that_no_server_knows_is_seen(tmp_path: Path) -> None:
    (tmp_path / "batching.config").write_text("max_batch { value: 1 }")
    with pytest.raises(text_format.ParseError, match="max_batch"):
        parsed(tmp_path / "batching.config", "BatchingParameters")


def commands(kit: Path) -> dict[str, list[str]]:
    """The server's arguments: of docker run, of compose, of Kubernetes."""
    readme = (kit / "README.md").read_text()
    line = re.search(r"^docker run .*?(?=\n```)", readme, re.DOTALL | re.MULTILINE)
    assert line
    words = shlex.split(line[0].replace("\\\n", " "))
    (service,) = yaml.safe_load((kit / "compose.yaml").read_text())["services"].values()
    deployment, *_ = yaml.safe_load_all((kit / "kubernetes.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {
        "docker": [word for word in words if word.startswith("--") and word != "--rm"],
        "compose": service["command"],
        "kubernetes": container["args"],
    }


def test_all_ways_start_the_server_alike_and_its_files_are_there(kit: Path) -> None:
    started = commands(kit)
    assert set(started["docker"]) == set(started["compose"]) == set(started["kubernetes"])
    files = [value.split("=")[1] for value in started["docker"] if "_file=" in value]
    assert len(files) == 3
    for file in files:
        inside = Path(file).relative_to(f"/models/{kit.parent.name}")
        assert (kit.parent / inside).is_file()


def test_compose_mounts_the_folder_of_versions(kit: Path) -> None:
    (service,) = yaml.safe_load((kit / "compose.yaml").read_text())["services"].values()
    assert service["volumes"] == [f"..:/models/{kit.parent.name}:ro"]
    assert service["ports"] == ["8500:8500", "8501:8501"]
    assert "GET /v1/models/" in service["healthcheck"]["test"][-1]
    assert re.fullmatch(r"tensorflow/serving:2\.\d+\.\d+", service["image"])


def test_kubernetes_objects_belong_together(kit: Path) -> None:
    deployment, service, scaler = yaml.safe_load_all((kit / "kubernetes.yaml").read_text())
    name = deployment["metadata"]["name"]
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name)
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert deployment["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert service["spec"]["selector"] == pod["metadata"]["labels"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"grpc": 8500, "rest": 8501}
    assert {port["targetPort"] for port in service["spec"]["ports"]} == set(ports)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        action = container[probe].get("httpGet") or container[probe]["tcpSocket"]
        assert action["port"] in ports
    assert scaler["spec"]["scaleTargetRef"]["name"] == name
    assert "cpu" in container["resources"]["requests"], "else the autoscaler has nothing to go by"


def test_the_protocol_has_every_method(kit: Path) -> None:
    """What grpcurl reads: services and all their messages, each file after those it needs."""
    content = (kit / "prediction_service.protoset").read_bytes()
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(content).file:
        pool.Add(file)
    predict = pool.FindServiceByName("tensorflow.serving.PredictionService")
    assert predict.methods_by_name["Predict"].input_type.fields_by_name["inputs"].message_type
    assert pool.FindServiceByName("tensorflow.serving.ModelService").methods_by_name
    readme = (kit / "README.md").read_text()
    (body,) = re.findall(r"<<< '(\{.*?\})'", readme, re.DOTALL)
    request = message_factory.GetMessageClass(
        pool.FindMessageTypeByName("tensorflow.serving.PredictRequest")
    )()
    json_format.Parse(body, request, descriptor_pool=pool)
    assert list(request.inputs["text"].string_val) == [b"Hello."]


def test_the_readme_has_every_signature_and_no_gap(kit: Path, exported: Path) -> None:
    readme = (kit / "README.md").read_text()
    for name in read_meta_graph(exported).signature_def:
        assert name.startswith("__") or f"| `{name}` |" in readme
    assert "`texts` string (B, 4)" in readme
    assert "TensorFlow Serving 2.16 to 2.20" in readme
    for file in kit.iterdir():
        assert b"{{" not in file.read_bytes(), file
    for body in re.findall(r"-d '(\{.*?\})' \S*localhost|-d '(\{.*?\})' \\", readme):
        json.loads("".join(body))


def test_what_the_owner_changed_stays(exported: Path, tmp_path: Path) -> None:
    graph = read_meta_graph(exported)
    assert len(write_kit(tmp_path, "en-de", graph, 10**6)) == 7
    (tmp_path / "serving" / "batching.config").write_text("mine")
    (tmp_path / "serving" / "compose.yaml").unlink()
    assert write_kit(tmp_path, "fr-en", graph, 10**6) == [tmp_path / "serving" / "compose.yaml"]
    assert (tmp_path / "serving" / "batching.config").read_text() == "mine"


def test_the_model_is_called_as_its_folder(tmp_path: Path) -> None:
    assert model_name(tmp_path / "en-de") == "en-de"
    assert model_name(tmp_path / "en de", "en_de.2") == "en_de.2"
    for wrong in ("en de", "ä", "-x", "a/b"):
        with pytest.raises(InputError, match="The name of a served model"):
            model_name(tmp_path, wrong)
    with pytest.raises(InputError, match="Received: 'en de'"):
        model_name(tmp_path / "en de")
