"""moto's server: the AWS APIs that shipped contracts speak, in memory, without an account and without containers.

    python start.py DIR PORT [--install-only]
Three of them, because what moto simulates is a setting of a whole server:
 - PORT    Athena queries and Glue job runs step through their states; Batch jobs succeed at once; state machines are
           executed
 - PORT+1  Athena queries stay queued, Glue job runs stay starting; Batch jobs step through their states by time and end
           as failed (no container can be started: DOCKER_HOST leads nowhere)
 - PORT+2  as PORT, and from the setting up on every request's signature is verified against the access key
"""
import json
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import serverlib as s

REGION = "eu-central-1"
STEP_S = 2
d, port, only = s.args()
b = s.venv(d, "moto[server]==5.2.5")
if only:
    sys.exit()
env = {"AWS_DEFAULT_REGION": REGION, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "NO_PROXY": "*",
       "DOCKER_HOST": f"unix://{d}/no-docker.sock", "MOTO_IAM_LOAD_MANAGED_POLICIES": "false", "DO_NOT_TRACK": "1"}


def tell(url: str, path: str, body) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}/moto-api/{path}", data, {"Content-Type": "application/json"}, method="POST")
    urllib.request.urlopen(request, timeout=10).read()


def iam(url: str, **fields: str) -> str:
    """One call of the query API: an access key for the server that verifies."""
    form = urllib.parse.urlencode({**fields, "Version": "2010-05-08"})
    scope = "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=0"
    request = urllib.request.Request(url, form.encode(), {"Authorization": scope, "Content-Type": "application/x-www-form-urlencoded"})
    return urllib.request.urlopen(request, timeout=10).read().decode()


def between(text: str, name: str) -> str:
    return text.split(f"<{name}>", 1)[1].split("<", 1)[0]


t = time.monotonic()
urls = [f"http://127.0.0.1:{port + n}" for n in range(3)]
for n, url in enumerate(urls):
    s.spawn(d, f"server-{n}", [b / "moto_server", "-H", "127.0.0.1", "-p", port + n], env=env)
for url in urls:
    s.wait_http(f"{url}/moto-api/", 120, codes=(200,))
    tell(url, "config", {"batch": {"use_docker": url == urls[1]}, "stepfunctions": {"execute_state_machine": True}})
plain, slow, checked = urls
for model in ("athena::execution", "glue::job_run"):
    for url in (plain, checked):
        tell(url, "state-manager/set-transition", {"model_name": model, "transition": {"progression": "manual", "times": 1}})
    tell(slow, "state-manager/set-transition", {"model_name": model, "transition": {"progression": "manual", "times": 1_000_000}})
tell(slow, "state-manager/set-transition", {"model_name": "batch::job", "transition": {"progression": "time", "seconds": STEP_S}})
iam(checked, Action="CreateUser", UserName="caller")
policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
iam(checked, Action="PutUserPolicy", UserName="caller", PolicyName="all", PolicyDocument=json.dumps(policy))
key = iam(checked, Action="CreateAccessKey", UserName="caller")
facts = {"slow": slow, "checked": checked, "access_key": between(key, "AccessKeyId"), "secret_key": between(key, "SecretAccessKey")}
tell(checked, "reset-auth", b"0")  # from here on every request is verified
s.serve(d, plain, t, region=REGION, **facts)
