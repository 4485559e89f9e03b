"""What differs from the paper's setting: what can explain that a claim does not hold here."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

from experiments.harness.page import percent
from experiments.harness.points import ALL_POINTS
from experiments.reproduce.findings import Findings, load_paper
from experiments.speed.goals import BUSY_SHARE

TIMED = ("speed", "graphs", "layout", "soft", "cells", "higher")
"""Parts whose runs time searches."""

VISIBLE_SHARE = 0.01
"""Below it Phase 2 adds less than a sixth to the operations of Phase 1, even with K = 8."""


@dataclass(frozen=True)
class Reason:
    """A difference: in a few words beside a claim, and in full in the summary."""

    brief: str
    full: str


def other_scenes(findings: Findings) -> Reason | None:
    """Which scenes stand for the paper's; nothing if they are the paper's own."""
    if findings.has_official_scenes:
        return None
    theirs = load_paper()["training"]
    return Reason(
        "Other scenes.",
        f"The scenes differ: {findings.train} to {' and '.join(findings.tests)} here, "
        f"{theirs['train_scene']} to {' and '.join(theirs['test_scenes'])} in the paper.",
    )


def other_training(findings: Findings) -> Reason | None:
    """How the variants were made, if not as in the paper."""
    recipe = findings.settings["recipe"]
    if recipe == "turned":
        return Reason(
            "The variants were rotated, not trained.",
            "The variants were not trained: the last layer of the baseline was rotated "
            "(`--recipe turned`). The paper fine-tunes the whole network.",
        )
    if recipe == "tuned":
        return Reason(
            "The variants were rotated, then fine-tuned with a teacher.",
            "The variants were rotated and then fine-tuned with the baseline as teacher "
            "(`--recipe tuned`). The paper fine-tunes with a triplet loss.",
        )
    return None


def other_timing(findings: Findings) -> Reason:
    """What times are relative to, and what they were disturbed by."""
    brief = "Other machine, FAISS as brute force"
    full = "Speed is relative to FAISS `IndexFlatIP` here, to a C++ loop in the paper"
    record = next((r for r in findings.records if r.name.split("/")[0] in TIMED), None)
    if record is not None:
        full += f", and the machine differs ({record.machine.get('cpu')})"
    shares = list_loads(findings)
    if shares and mean(shares) > BUSY_SHARE:
        load = percent(mean(shares))
        brief += f", other processes took {load}"
        full += f"; other processes took {load} of the processors meanwhile"
    return Reason(f"{brief}.", f"{full}.")


def small_phase2(findings: Findings) -> str:
    """That Phase 2 is too small to be seen in the times, where it is."""
    known = [
        share
        for point in ALL_POINTS
        for scene in range(len(findings.tests))
        if (share := findings.phase2(point, scene)) is not None
    ]
    if not known or max(known) >= VISIBLE_SHARE:
        return ""
    return (
        f"Phase 2 evaluates at most {percent(max(known))} of the entries here, so that alpha "
        "hardly changes the time."
    )


def list_loads(findings: Findings) -> list[float]:
    """The share that other processes took of the processors in each run that timed searches."""
    return [
        share
        for record in findings.records
        if record.name.split("/")[0] in TIMED
        and (share := record.load["other_processes"]) is not None
    ]


def explain(*reasons: Reason | str | None) -> str:
    """The reasons beside a claim, each in a sentence.

    Examples
    --------
    >>> explain("It differs.", None, Reason("Other scenes.", "The scenes differ: ..."))
    'It differs. Other scenes.'
    """
    texts = [reason.brief if isinstance(reason, Reason) else reason for reason in reasons]
    return " ".join(text for text in texts if text)
