# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The alert rules for Prometheus and the dashboard for Grafana, against the metrics that a daemon has."""

import json
import re

from daemon_process import ROOT
from scrape import promtool

RULES = ROOT / "packaging/prometheus/pvrdma.rules.yml"
TESTS = ROOT / "tests/daemon/alerts.yml"
DASHBOARD = ROOT / "packaging/grafana/pvrdma.json"
DOC = (ROOT / "docs/metrics.md").read_text()
NAME = re.compile(r"\b((?:pvrdma|process)_[a-z_]+)\b")


def metrics_in(text):
    return {name for name in NAME.findall(text)}


def test_metrics_of_the_alert_rules_exist(everything):
    expressions = re.findall(r"^    expr: (.*)$", RULES.read_text(), re.M)
    assert len(expressions) > 10
    for expression in expressions:
        for name in metrics_in(expression) - {"pvrdma"}:
            assert name in everything.families, expression


def expressions_of(panel):
    yield from (target["expr"] for target in panel.get("targets", ()))


def test_metrics_of_the_dashboard_exist(everything):
    dashboard = json.loads(DASHBOARD.read_text())
    expressions = [text for panel in dashboard["panels"] for text in expressions_of(panel)]
    expressions += [variable["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    assert len(expressions) > 30
    for expression in expressions:
        names = metrics_in(expression)
        assert names and names <= everything.families, expression


def test_labels_of_the_alert_rules_and_the_dashboard_exist(everything):
    """Each name{label="value"} or name{label=~...} has a label that samples of this family can have."""
    labels = {}
    for family, pairs in everything.samples:
        labels.setdefault(family, set()).update(label for label, _ in pairs)
    labels["pvrdma_peer_state"] = {"peer", "state"}
    text = RULES.read_text() + DASHBOARD.read_text().replace('\\"', '"')
    found = re.findall(r"\b((?:pvrdma|process)_\w+){([^}]*)}", text)
    assert len(found) > 30
    for name, selectors in found:
        used = set(re.findall(r"(\w+)=", selectors)) - {"instance", "job"}
        assert used <= labels.get(name, set()) | ({"adapter"} if name.startswith("pvrdma_adapter_wire") else set()), name


def test_promtool_accepts_the_alert_rules():
    done = promtool("check", "rules", RULES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS: 17 rules found" in done.stdout


def test_alerts_fire():
    """The tests of promtool for each alert: when it fires, and when it does not."""
    done = promtool("test", "rules", TESTS)
    assert done.returncode == 0, done.stdout + done.stderr
    tested = set(re.findall(r"alertname: (\w+)", TESTS.read_text()))
    assert tested == set(re.findall(r"- alert: (\w+)", RULES.read_text()))


def test_each_alert_is_documented():
    rules = re.findall(r"- alert: (\w+).*?severity: (\w+)", RULES.read_text(), re.S)
    assert re.findall(r"^\| (Pvrdma\w+) \| (\w+) \|", DOC, re.M) == rules
