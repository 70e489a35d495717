"""aria2 (Debian package) with JSON-RPC on PORT, and on PORT+1 a slow file server of our own for it to download from.

    python start.py DIR PORT [--install-only]
http://127.0.0.1:PORT+1/slow/<bytes>/<bytes per second>/<name>   a file sent at that rate; give each job its own name
http://127.0.0.1:PORT+1/code/<status>                     that status
"""
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import serverlib as s

d, port, only = s.args()
if not shutil.which("aria2c"):
    s.apt(d, "aria2")
if only:
    sys.exit()
(d / "slow.py").write_text('''
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class H(BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_GET(self):
        p = self.path.strip("/").split("/")
        if p[0] == "slow":
            n, rate = min(int(p[1]), 50_000_000), max(int(p[2]), 1)
            total, off = n, 0
            rng = self.headers.get("Range", "")
            if rng.startswith("bytes="):
                off = int(rng[6:].split("-")[0])
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {off}-{total - 1}/{total}")
            else:
                self.send_response(200)
            n = total - off
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(n))
            self.end_headers()
            while n > 0:
                k = min(n, max(rate // 10, 1))
                try:
                    self.wfile.write(b"x" * k); self.wfile.flush()
                except OSError:
                    return
                n -= k
                time.sleep(0.1)
        else:
            self.send_response(int(p[1]) if p[0] == "code" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
''')
shutil.rmtree(d / "downloads", ignore_errors=True)
(d / "downloads").mkdir()
t = time.monotonic()
s.spawn(d, "files", [sys.executable, d / "slow.py", port + 1])
s.spawn(d, "server", ["aria2c", "--no-conf", "--enable-rpc", "--rpc-listen-all=false", f"--rpc-listen-port={port}", "--disable-ipv6",
                      "--enable-dht=false", "--bt-enable-lpd=false", "--max-concurrent-downloads=1", "--max-tries=1", f"--dir={d / 'downloads'}",
                      "--auto-file-renaming=true", "--max-download-result=50"])
s.wait_http(f"http://127.0.0.1:{port}/jsonrpc?method=aria2.getVersion&id=x")
s.serve(d, f"http://127.0.0.1:{port}", t, files=f"http://127.0.0.1:{port + 1}")
