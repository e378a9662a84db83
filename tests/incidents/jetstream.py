#!/usr/bin/env python3
"""Plays somebody at the broker. Usage: jetstream.py URL COMMAND STREAM
  info       print what the stream has, as JSON
  delete     delete the stream
  purge      delete all of its messages
  set K=V…   change its configuration, as max_bytes=4000 discard=new"""
import json
import socket
import sys
from urllib.parse import urlsplit


class Broker:
    """One connection that speaks the NATS protocol, as far as requests to JetStream's API need it."""

    def __init__(self, url):
        place = urlsplit(url)
        self.socket = socket.create_connection((place.hostname, place.port), timeout=5)
        self.lines = self.socket.makefile("rb")
        self.lines.readline()  # INFO
        self.send('CONNECT {"verbose":false,"pedantic":false}', "SUB answers 1")

    def send(self, *lines):
        self.socket.sendall("".join(line + "\r\n" for line in lines).encode())

    def ask(self, subject, body=None):
        text = "" if body is None else json.dumps(body)
        self.send(f"PUB $JS.API.{subject} answers {len(text.encode())}", text)
        while True:
            words = self.lines.readline().split()
            if not words or words[0] == b"-ERR":
                sys.exit(f"the broker closed the connection at {subject}")
            if words[0] == b"PING":
                self.send("PONG")
            elif words[0] == b"MSG":
                answer = json.loads(self.lines.read(int(words[-1]) + 2))
                if "error" in answer:
                    sys.exit(f"{subject}: {answer['error']['description']}")
                return answer


def number_or_word(text):
    return int(text) if text.lstrip("-").isdigit() else text


def main(url, command, stream, *settings):
    broker = Broker(url)
    if command == "info":
        print(json.dumps(broker.ask(f"STREAM.INFO.{stream}")))
    elif command == "delete":
        broker.ask(f"STREAM.DELETE.{stream}")
    elif command == "purge":
        print(broker.ask(f"STREAM.PURGE.{stream}")["purged"])
    elif command == "set" and settings:
        config = broker.ask(f"STREAM.INFO.{stream}")["config"]
        config.update((name, number_or_word(value)) for name, value in (s.split("=") for s in settings))
        broker.ask(f"STREAM.UPDATE.{stream}", config)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
