"""An S3 server on loopback, for the real clients: listing in pages, ranges, multipart uploads,
batch deletes, and conditional writes, each request whole before the next changes anything."""

import http.server
import os
import re
import sys
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import md5
from urllib.parse import parse_qs, quote, unquote, urlsplit
from uuid import uuid4
from xml.sax.saxutils import escape, unescape

KEY, SECRET, TOKEN = "AKIANEVERTOBESEEN", "never-to-be-seen-either", "nor-is-this-token"
SIGNATURE = "51907a7e51907a7e"
SECRETS = (KEY, SECRET, TOKEN, SIGNATURE)
"""What clients sign with, and what a server quotes of it, so that a test can look for it."""
QUOTED = (
    f"<AWSAccessKeyId>{KEY}</AWSAccessKeyId><Token-0>{TOKEN}</Token-0>"
    f"<SignatureProvided>{SIGNATURE}</SignatureProvided><Request>http://corpus/x?"
    f"X-Amz-Credential={KEY}%2F20260101&amp;X-Amz-Security-Token={TOKEN}&amp;"
    f"X-Amz-Signature={SIGNATURE}</Request>"
)
NAMES = re.compile(rb"<Key>([^<]*)</Key>")


def tag(content):
    return md5(content, usedforsecurity=False).hexdigest()


class Bucket(http.server.ThreadingHTTPServer):
    """`objects` are key -> bytes in the bucket `name`, listed `page` at a time; `refused` keys
    answer 403, and so does the page after `breaks_after` pages. `before` is called with the method
    and the key of each request before it is answered; while `denied`, everything answers as to a
    wrong key; the answers to `lost_answers` writes say that the server failed, once it wrote."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, name="corpus", port=0):
        self.name, self.objects, self.times, self.uploads = name, {}, {}, {}
        self.requests = []
        self.page = 1000
        self.heal()
        self.lock = threading.RLock()
        super().__init__(("127.0.0.1", port), _Handler)

    def heal(self):
        """Whatever a test made go wrong goes right again."""
        self.refused, self.breaks_after, self.denied = set(), None, None
        self.before = lambda method, key: None
        self.lost_answers = 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def environment(self):
        """What names the server to clients, and keeps them from any other."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_SESSION_TOKEN": TOKEN,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": "127.0.0.1",
        }

    @contextmanager
    def serving(self):
        thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            thread.join()
            self.server_close()

    def handle_error(self, request, client_address):
        """A client that was killed is nothing to speak of."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @property
    def read(self):
        """The keys whose content was asked for."""
        return sorted(
            key for method, key, query in self.requests if method == "GET" and key and not query
        )

    def put(self, key, content):
        self.objects[key], self.times[key] = content, datetime.now(UTC)

    def time(self, key):
        return self.times.get(key, datetime(2026, 1, 31, 12, tzinfo=UTC))

    def listed(self, query):
        asked = {name: values[0] for name, values in query.items()}
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        names = set()
        for key in list(self.objects):
            if key.startswith(prefix):
                inner, cut, _ = key[len(prefix) :].partition(delimiter or "\0")
                names.add(prefix + inner + cut)
        after = asked.get("continuation-token") or asked.get("start-after", "")
        page = min(self.page, int(asked.get("max-keys", self.page)))
        rest = sorted(name for name in names if name > after)
        shown, more = rest[:page], rest[page:]
        lines = [
            f"<Contents><Key>{escape(name)}</Key><Size>{len(self.objects[name])}</Size>"
            f"<ETag>&quot;{tag(self.objects[name])}&quot;</ETag>"
            f"<LastModified>{self.time(name):%Y-%m-%dT%H:%M:%S.%f}Z</LastModified></Contents>"
            if name in self.objects
            else f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            for name in shown
        ]
        last = escape(shown[-1]) if more else ""
        return (
            f"<ListBucketResult><Name>{self.name}</Name>"
            f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
            f"<KeyCount>{len(shown)}</KeyCount>{f'<NextContinuationToken>{last}</NextContinuationToken>' if more else ''}{''.join(lines)}"
            "</ListBucketResult>"
        ).encode()

    def broken_condition(self, key, headers):
        """The status for a write whose condition does not hold; None if it may go on."""
        present = tag(self.objects[key]) if key in self.objects else None
        if headers.get("If-None-Match") == "*" and present is not None:
            return 412, "PreconditionFailed"
        wanted = headers.get("If-Match")
        if wanted is not None and present is None:
            return 404, "NoSuchKey"
        if wanted is not None and wanted.strip('"') != present:
            return 412, "PreconditionFailed"
        return None


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Bucket
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self):
        body = self.content()
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        key = unquote(parts.path).removeprefix(f"/{self.server.name}").removeprefix("/")
        self.server.before(self.command, key)
        with self.server.lock:
            self.server.requests.append((self.command, key, query))
            if self.server.denied is not None and self.server.denied in unquote(self.path):
                self.error(403, "InvalidAccessKeyId", QUOTED)
            elif not f"{parts.path}/".startswith(f"/{self.server.name}/"):
                self.error(404, "NoSuchBucket")
            elif key in self.server.refused:
                self.error(403, "AccessDenied")
            else:
                getattr(self, f"on_{self.command.lower()}")(key, query, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

    def on_get(self, key, query, body):
        if key or not query:
            return self.object(key)
        pages = sum("list-type" in asked for _, _, asked in self.server.requests)
        if self.server.breaks_after is not None and pages > self.server.breaks_after:
            return self.error(403, "AccessDenied")
        return self.reply(200, self.server.listed(query))

    def on_head(self, key, query, body):
        self.object(key)

    def on_put(self, key, query, body):
        if "uploadId" in query:
            self.server.uploads[query["uploadId"][0]][int(query["partNumber"][0])] = body
            return self.reply(200, b"", {"ETag": f'"{tag(body)}"'})
        if broken := self.server.broken_condition(key, self.headers):
            return self.error(*broken)
        source = self.headers.get("x-amz-copy-source")
        if source is not None:
            body = self.server.objects[unquote(source).lstrip("/").partition("/")[2]]
        self.server.put(key, body)
        if self.server.lost_answers:
            self.server.lost_answers -= 1
            return self.error(500, "InternalError")
        copied = f"<CopyObjectResult><ETag>{tag(body)}</ETag></CopyObjectResult>".encode()
        return self.reply(200, copied if source else b"", {"ETag": f'"{tag(body)}"'})

    def on_post(self, key, query, body):
        if "delete" in query:
            names = NAMES.findall(body)
            for name in names:
                self.server.objects.pop(unescape(name.decode()), None)
            deleted = b"".join(b"<Deleted><Key>%b</Key></Deleted>" % name for name in names)
            return self.reply(200, b"<DeleteResult>%b</DeleteResult>" % deleted)
        if "uploads" in query:
            name = uuid4().hex
            self.server.uploads[name] = {}
            return self.reply(
                200,
                f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>"
                "</InitiateMultipartUploadResult>".encode(),
            )
        if broken := self.server.broken_condition(key, self.headers):
            return self.error(*broken)
        parts = self.server.uploads.pop(query["uploadId"][0])
        content = b"".join(parts[number] for number in sorted(parts))
        self.server.put(key, content)
        return self.reply(
            200,
            f"<CompleteMultipartUploadResult><ETag>{tag(content)}</ETag>"
            "</CompleteMultipartUploadResult>".encode(),
        )

    def on_delete(self, key, query, body):
        if "uploadId" in query:
            self.server.uploads.pop(query["uploadId"][0], None)
        else:
            self.server.objects.pop(key, None)
        self.reply(204, b"")

    def object(self, key):
        if key not in self.server.objects:
            return self.error(404, "NoSuchKey")
        content = self.server.objects[key]
        said = {
            "ETag": f'"{tag(content)}"',
            "Last-Modified": format_datetime(self.server.time(key), usegmt=True),
            "Accept-Ranges": "bytes",
        }
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            return self.reply(200, content, said)
        first = int(asked[1]) if asked[1] else max(0, len(content) - int(asked[2]))
        last = min(int(asked[2]), len(content) - 1) if asked[1] and asked[2] else len(content) - 1
        if first >= len(content):
            return self.error(416, "InvalidRange")
        said["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        return self.reply(206, content[first : last + 1], said)

    def content(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
            return body
        content = b""
        while body:
            size, _, rest = body.partition(b"\r\n")
            length = int(size.partition(b";")[0], 16)
            content, body = content + rest[:length], rest[length + 2 :] if length else b""
        return content

    def error(self, status, code, more=""):
        body = f"<Error><Code>{code}</Code><Message>{quote(code)}</Message>{more}</Error>"
        self.reply(status, body.encode())

    def reply(self, status, body, headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args):
        pass
