"""python capture.py URL OUT.json     (URL: of the first server, the second answers at the next port)"""
import json
import sys
import time
import uuid
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from capturelib import Recorder, life as states, save

base, out = sys.argv[1:3]
port = urlsplit(base).port
fast = Recorder(base)
slow = Recorder(base.replace(f":{port}", f":{port + 1}"))
SEEN = {}
REGION, ROLE = "eu-central-1", "arn:aws:iam::123456789012:role/any"


def ask(r, service, path, body, target=None, note="", keep=True):
    scope = f"testing/20260101/{REGION}/{service}/aws4_request"
    headers = {"Content-Type": "application/x-amz-json-1.0" if service == "states" else "application/x-amz-json-1.1",
               "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"}
    if target:
        headers["X-Amz-Target"] = target
    return r.call("POST", path, body, headers, note=note, keep=keep)


def sfn(action, body, note="", keep=True):
    return ask(fast, "states", "/", body, f"AWSStepFunctions.{action}", note, keep)


def execution(note, state, until, **machine):
    name = uuid.uuid4().hex[:8]
    text = json.dumps({"StartAt": "a", "States": {"a": state}, **machine})
    arn = sfn("CreateStateMachine", {"name": name, "definition": text, "roleArn": ROLE}, keep=False)[2]["stateMachineArn"]
    run = sfn("StartExecution", {"stateMachineArn": arn, "name": name}, f"start {note}")[2]["executionArn"]
    time.sleep(0.3)
    SEEN[note] = states(fast, note, lambda k: sfn("DescribeExecution", {"executionArn": run}, keep=k),
                        lambda st, h, js: js.get("status"), lambda x: x in until, 0.3, 30)
    return run


execution("execution that passes", {"Type": "Pass", "Result": {"n": 1}, "End": True}, ("SUCCEEDED",))
execution("execution that fails", {"Type": "Fail", "Error": "Asked", "Cause": "asked to fail"}, ("FAILED",))
execution("execution over its time", {"Type": "Wait", "Seconds": 30, "End": True}, ("TIMED_OUT",), TimeoutSeconds=1)
run = execution("execution that waits", {"Type": "Wait", "Seconds": 600, "End": True}, ("RUNNING",))
sfn("StopExecution", {"executionArn": run}, "stop the execution")
sfn("DescribeExecution", {"executionArn": run}, "execution after the stop")
sfn("StopExecution", {"executionArn": run}, "stop it again")
sfn("DescribeExecution", {"executionArn": run + "x"}, "unknown execution")


def athena(r, action, body, note="", keep=True):
    return ask(r, "athena", "/", body, f"AmazonAthena.{action}", note, keep)


def query(r, note):
    body = {"QueryString": "select 1", "ResultConfiguration": {"OutputLocation": "s3://bucket/results/"}}
    return athena(r, "StartQueryExecution", body, note)[2]["QueryExecutionId"]


q = query(fast, "start query")
SEEN["query"] = states(fast, "query", lambda k: athena(fast, "GetQueryExecution", {"QueryExecutionId": q}, keep=k),
                       lambda st, h, js: js["QueryExecution"]["Status"]["State"], lambda x: x == "SUCCEEDED", 0.1, 20)
q = query(slow, "start query that stays queued")
athena(slow, "GetQueryExecution", {"QueryExecutionId": q}, "query that stays queued")
athena(slow, "StopQueryExecution", {"QueryExecutionId": q}, "stop the query")
athena(slow, "GetQueryExecution", {"QueryExecutionId": q}, "query after the stop")
athena(fast, "GetQueryExecution", {"QueryExecutionId": "00000000-0000-4000-8000-000000000000"}, "unknown query: a fault of moto")


def batch(r, path, body, note="", keep=True):
    return ask(r, "batch", f"/v1/{path}", body, None, note, keep)


def iam_role(r):
    scope = "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=0"
    name = uuid.uuid4().hex[:8]
    form = f"Action=CreateRole&Version=2010-05-08&RoleName={name}&AssumeRolePolicyDocument=%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%5D%7D"
    text = r.call("POST", "/", form, {"Authorization": scope, "Content-Type": "application/x-www-form-urlencoded"}, keep=False)[2]
    return text.split("<Arn>", 1)[1].split("<", 1)[0]


def prepared(r):
    n = uuid.uuid4().hex[:8]
    batch(r, "createcomputeenvironment", {"computeEnvironmentName": n, "type": "UNMANAGED", "state": "ENABLED", "serviceRole": iam_role(r)}, keep=False)
    batch(r, "createjobqueue", {"jobQueueName": n, "state": "ENABLED", "priority": 1, "computeEnvironmentOrder": [{"order": 1, "computeEnvironment": n}]}, keep=False)
    batch(r, "registerjobdefinition", {"jobDefinitionName": n, "type": "container", "containerProperties": {"image": "busybox", "vcpus": 1, "memory": 128, "command": ["true"]}}, keep=False)
    return n


def job_states(r, note, job, until):
    SEEN[note] = states(r, note, lambda k: batch(r, "describejobs", {"jobs": [job]}, keep=k),
                        lambda st, h, js: js["jobs"][0]["status"], lambda x: x in until, 0.3, 40)


n = prepared(fast)
job = batch(fast, "submitjob", {"jobName": "nap-a", "jobQueue": n, "jobDefinition": n}, "submit job")[2]["jobId"]
job_states(fast, "job", job, ("SUCCEEDED",))
batch(fast, "describejobs", {"jobs": ["00000000-0000-4000-8000-000000000000"]}, "unknown job")
n = prepared(slow)
first = batch(slow, "submitjob", {"jobName": "nap-a", "jobQueue": n, "jobDefinition": n}, "submit a job that fails")[2]["jobId"]
job_states(slow, "job without a container", first, ("FAILED",))
first = batch(slow, "submitjob", {"jobName": "nap-a", "jobQueue": n, "jobDefinition": n}, keep=False)[2]["jobId"]
job = batch(slow, "submitjob", {"jobName": "nap-b", "jobQueue": n, "jobDefinition": n, "dependsOn": [{"jobId": first}]}, keep=False)[2]["jobId"]
job_states(slow, "job that waits for another", job, ("PENDING",))
batch(slow, "terminatejob", {"jobId": job, "reason": "cancelled by an operator"}, "terminate the job")
job_states(slow, "job after the terminate", job, ("FAILED",))
def glue(r, action, body, note="", keep=True):
    return ask(r, "glue", "/", body, f"AWSGlue.{action}", note, keep)


def glue_run(r, note):
    name = uuid.uuid4().hex[:8]
    glue(r, "CreateJob", {"Name": name, "Role": ROLE, "Command": {"Name": "glueetl", "ScriptLocation": "s3://bucket/job.py"}}, keep=False)
    return name, glue(r, "StartJobRun", {"JobName": name}, note)[2]["JobRunId"]


name, run = glue_run(fast, "start job run")
SEEN["job run"] = states(fast, "job run", lambda k: glue(fast, "GetJobRun", {"JobName": name, "RunId": run}, keep=k),
                         lambda st, h, js: js["JobRun"]["JobRunState"], lambda x: x == "SUCCEEDED", 0.1, 20)
glue(fast, "GetJobRun", {"JobName": name, "RunId": run + "x"}, "unknown job run")
glue(fast, "GetJobRun", {"JobName": name + "x", "RunId": run}, "job run of an unknown job")
name, run = glue_run(slow, "start job run that stays starting")
glue(slow, "GetJobRun", {"JobName": name, "RunId": run}, "job run that stays starting")
glue(slow, "BatchStopJobRun", {"JobName": name, "JobRunIds": [run]}, "stop the job run: moto has no such action")


def build(action, body, note="", keep=True):
    return ask(fast, "codebuild", "/", body, f"CodeBuild_20161006.{action}", note, keep)


name = f"p{uuid.uuid4().hex[:8]}"
build("CreateProject", {"name": name, "source": {"type": "S3", "location": "bucket/source.zip"}, "artifacts": {"type": "NO_ARTIFACTS"},
                        "environment": {"type": "LINUX_CONTAINER", "image": "none", "computeType": "BUILD_GENERAL1_SMALL"},
                        "serviceRole": ROLE}, keep=False)
one = build("StartBuild", {"projectName": name, "artifactsOverride": {"type": "S3", "location": "bucket"}}, "start build")[2]["build"]["id"]
build("BatchGetBuilds", {"ids": [one]}, "build")
build("StopBuild", {"id": one}, "stop the build")
build("BatchGetBuilds", {"ids": [one]}, "build after the stop: moto says that it succeeded")
build("BatchGetBuilds", {"ids": [f"{name}:none"]}, "unknown build: left out, and not in buildsNotFound")


def statement(action, body, note="", keep=True):
    return ask(fast, "redshift-data", "/", body, f"RedshiftData.{action}", note, keep)


one = statement("ExecuteStatement", {"ClusterIdentifier": "c", "Database": "d", "DbUser": "u", "Sql": "select 1"}, "start statement")[2]["Id"]
statement("DescribeStatement", {"Id": one}, "statement: never ends by itself")
statement("CancelStatement", {"Id": one}, "cancel the statement")
statement("DescribeStatement", {"Id": one}, "statement after the cancel")
statement("CancelStatement", {"Id": one}, "cancel it again")
statement("DescribeStatement", {"Id": "00000000-0000-4000-8000-000000000000"}, "unknown statement")


def textract(action, body, note="", keep=True):
    return ask(fast, "textract", "/", body, f"Textract.{action}", note, keep)


document = {"DocumentLocation": {"S3Object": {"Bucket": "bucket", "Name": "page.pdf"}}}
one = textract("StartDocumentTextDetection", document, "start text detection")[2]["JobId"]
textract("GetDocumentTextDetection", {"JobId": one, "MaxResults": 1}, "text detection")
textract("GetDocumentTextDetection", {"JobId": "none", "MaxResults": 1}, "unknown text detection")
ask(fast, "bedrock", "/model-invocation-job", {"jobName": "j"}, note="start model invocation job: moto has no such action")
save(out, {"server": "moto 5.2.5", "states_seen": SEEN, "exchanges": fast.clean(fast.log) + slow.clean(slow.log)})
print(SEEN)
