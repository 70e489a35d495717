"""Starts jobs at moto's servers, as an agent would with a client of AWS before it hands the wait over.

moto finds service and region in the signature's scope and, but for its verifying server, checks no signature: the
scope alone is sent from here. What the product sends is signed by the product.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import Any

from tests.support.servers import JobServer

TIMEOUT_S = 20
REGION = "eu-central-1"
ROLE = "arn:aws:iam::123456789012:role/any"


class Refused(Exception):
    """moto's answer was no success."""


def call(url: str, service: str, body: Any, *, target: str | None = None, path: str = "/") -> Any:
    """One call as AWS clients make it, without a true signature; the decoded answer."""
    scope = f"testing/20260101/{REGION}/{service}/aws4_request"
    headers = {"Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"}
    headers["Content-Type"] = "application/x-amz-json-1.0" if service == "states" else "application/x-amz-json-1.1"
    if target is not None:
        headers["X-Amz-Target"] = target
    request = urllib.request.Request(f"{url}{path}", json.dumps(body).encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        raise Refused(f"{path} {target}: {error.code} {error.read()[:300]!r}") from None


class StateMachines:
    """AWS Step Functions: moto executes the state machine."""

    contract = "aws-sfn"
    service = "states"
    unknown = f"arn:aws:states:{REGION}:123456789012:execution:none:none"

    def __init__(self, server: JobServer) -> None:
        self.base_url = server.url

    def start(self, kind: str) -> dict[str, Any]:
        """The answer to the submission of a job that ends as *kind* says."""
        states: dict[str, dict[str, Any]] = {
            "succeeding": {"Type": "Pass", "Result": {"n": 1}, "End": True},
            "failing": {"Type": "Fail", "Error": "Asked", "Cause": "asked to fail"},
            "endless": {"Type": "Wait", "Seconds": 600, "End": True},
            "late": {"Type": "Wait", "Seconds": 30, "End": True},
        }
        machine: dict[str, Any] = {"StartAt": "a", "States": {"a": states[kind]}}
        if kind == "late":
            machine["TimeoutSeconds"] = 1
        name = f"{kind}-{uuid.uuid4().hex}"
        made = self._call("CreateStateMachine", {"name": name, "definition": json.dumps(machine), "roleArn": ROLE})
        return dict(self._call("StartExecution", {"stateMachineArn": made["stateMachineArn"], "name": name}))

    def _call(self, action: str, body: Any) -> Any:
        return call(self.base_url, "states", body, target=f"AWSStepFunctions.{action}")


class Queries:
    """AWS Athena: moto runs no query, it steps through QUEUED, RUNNING and SUCCEEDED."""

    contract = "aws-athena"
    service = "athena"

    def __init__(self, server: JobServer, which: str = "url") -> None:
        self.base_url = str(server.facts[which])

    def start(self, kind: str) -> dict[str, Any]:
        body = {"QueryString": f"select '{kind}'", "ResultConfiguration": {"OutputLocation": "s3://bucket/results/"}}
        return dict(call(self.base_url, "athena", body, target="AmazonAthena.StartQueryExecution"))


class Jobs:
    """AWS Batch: on the plain server jobs succeed at once, on the slow one they step, and fail without a container."""

    contract = "aws-batch"
    service = "batch"
    unknown = "00000000-0000-4000-8000-000000000000"

    def __init__(self, server: JobServer, which: str = "url") -> None:
        self.base_url = str(server.facts[which])
        self._queue = f"q-{uuid.uuid4().hex[:12]}"
        self._prepare()

    def _prepare(self) -> None:
        """The least that a job needs; none of it starts anything."""
        environment = f"e-{uuid.uuid4().hex[:12]}"
        self._post("createcomputeenvironment", {"computeEnvironmentName": environment, "type": "UNMANAGED",
                                                "state": "ENABLED", "serviceRole": self._role()})  # fmt: skip
        order = [{"order": 1, "computeEnvironment": environment}]
        self._post("createjobqueue", {"jobQueueName": self._queue, "state": "ENABLED", "priority": 1,
                                      "computeEnvironmentOrder": order})  # fmt: skip
        container = {"image": "busybox", "vcpus": 1, "memory": 128, "command": ["true"]}
        self._post("registerjobdefinition", {"jobDefinitionName": self._queue, "type": "container",
                                             "containerProperties": container})  # fmt: skip

    def _role(self) -> str:
        """moto looks the role up."""
        name = f"r-{uuid.uuid4().hex[:12]}"
        policy = json.dumps({"Version": "2012-10-17", "Statement": []})
        fields = {"Action": "CreateRole", "Version": "2010-05-08", "RoleName": name, "AssumeRolePolicyDocument": policy}
        form = urllib.parse.urlencode(fields)
        scope = "testing/20260101/us-east-1/iam/aws4_request"
        headers = {"Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0",
                   "Content-Type": "application/x-www-form-urlencoded"}  # fmt: skip
        request = urllib.request.Request(self.base_url, form.encode(), headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return str(answer.read().decode().split("<Arn>", 1)[1].split("<", 1)[0])

    def start(self, kind: str, after: str | None = None) -> dict[str, Any]:
        """*after*: the job that this one waits for, and fails with."""
        body: dict[str, Any] = {"jobName": f"{kind}-1", "jobQueue": self._queue, "jobDefinition": self._queue}
        if after is not None:
            body["dependsOn"] = [{"jobId": after}]
        return dict(self._post("submitjob", body))

    def _post(self, path: str, body: Any) -> Any:
        return call(self.base_url, "batch", body, path=f"/v1/{path}")


class JobRuns:
    """AWS Glue: moto runs no script, it steps through STARTING, RUNNING and SUCCEEDED. It has no BatchStopJobRun."""

    contract = "aws-glue"
    service = "glue"
    unknown = f"jr_{'0' * 64}"

    def __init__(self, server: JobServer, which: str = "url") -> None:
        self.base_url = str(server.facts[which])
        self.params = {"job": f"j-{uuid.uuid4().hex[:12]}"}
        command = {"Name": "glueetl", "ScriptLocation": "s3://bucket/job.py"}
        self._call("CreateJob", {"Name": self.params["job"], "Role": ROLE, "Command": command})

    def start(self, kind: str) -> dict[str, Any]:
        return dict(self._call("StartJobRun", {"JobName": self.params["job"], "Arguments": {"--kind": kind}}))

    def _call(self, action: str, body: Any) -> Any:
        return call(self.base_url, "glue", body, target=f"AWSGlue.{action}")


class Builds:
    """AWS CodeBuild: moto ends every build as SUCCEEDED at the first question, also one that was stopped."""

    contract = "aws-codebuild"
    service = "codebuild"

    def __init__(self, server: JobServer) -> None:
        self.base_url = server.url
        self._project = f"p{uuid.uuid4().hex[:12]}"
        self.unknown = f"{self._project}:00000000-0000-4000-8000-000000000000"
        environment = {"type": "LINUX_CONTAINER", "image": "none", "computeType": "BUILD_GENERAL1_SMALL"}
        source = {"type": "S3", "location": "bucket/source.zip"}
        self._call("CreateProject", {"name": self._project, "source": source, "environment": environment,
                                     "artifacts": {"type": "NO_ARTIFACTS"}, "serviceRole": ROLE})  # fmt: skip

    def start(self, kind: str) -> dict[str, Any]:
        artifacts = {"type": "S3", "location": f"bucket/{kind}"}
        return dict(self._call("StartBuild", {"projectName": self._project, "artifactsOverride": artifacts}))

    def _call(self, action: str, body: Any) -> Any:
        return call(self.base_url, "codebuild", body, target=f"CodeBuild_20161006.{action}")


class Statements:
    """AWS Redshift Data: a statement of moto stays STARTED until it is cancelled."""

    contract = "aws-redshift"
    service = "redshift-data"
    unknown = "00000000-0000-4000-8000-000000000000"

    def __init__(self, server: JobServer) -> None:
        self.base_url = server.url

    def start(self, kind: str) -> dict[str, Any]:
        body = {"ClusterIdentifier": "c", "Database": "d", "DbUser": "u", "Sql": f"select '{kind}'"}
        return dict(call(self.base_url, "redshift-data", body, target="RedshiftData.ExecuteStatement"))


class Detections:
    """AWS Textract: moto has read every document at once, and found nothing on it."""

    contract = "aws-textract"
    service = "textract"
    unknown = "none"

    def __init__(self, server: JobServer) -> None:
        self.base_url = server.url

    def start(self, kind: str) -> dict[str, Any]:
        body = {"DocumentLocation": {"S3Object": {"Bucket": "bucket", "Name": f"{kind}.pdf"}}}
        return dict(call(self.base_url, "textract", body, target="Textract.StartDocumentTextDetection"))


def now_text() -> str:
    """An HTTP date: what the saved answer to a submission carries."""
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
