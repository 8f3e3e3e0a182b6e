"""A grant covers one sweep, is signed, and ends."""

from datetime import timedelta

import pytest

from agent.core.decision.decision import Channel, HmacReceiptSigner
from agent.core.sweep.cell import PlannedCell
from agent.core.sweep.grant import VALID, SweepGrant, SweepRequest, check_signed, sign_grant
from agent.errors import PolicyRefused
from tests.agent.core.sweep.values import NOW

SIGNER = HmacReceiptSigner(b"k" * 32)


def request(**changes) -> SweepRequest:
    cell = PlannedCell(context_tokens=1024, output_tokens=128, concurrency=8, requests=32)
    base = SweepRequest(
        service="svc", endpoint="http://127.0.0.1:8000", model="m", served_model="m", cells=(cell,), max_minutes=20,
        max_usd=1.0, usd_per_h=2.0, asker="ada", channel=Channel.COMMAND_LINE, made_at=NOW,
    )  # fmt: skip
    return base.with_(**changes)


def grant(asked: SweepRequest | None = None) -> SweepGrant:
    made = SweepGrant(
        request=asked or request(), approver="bob", channel=Channel.COMMAND_LINE, verified=False, approved_at=NOW,
        expires_at=NOW + VALID,
    )  # fmt: skip
    return sign_grant(made, SIGNER)


def test_a_signed_grant_holds_until_it_expires() -> None:
    """A day."""
    check_signed(grant(), request(), SIGNER, now=NOW + timedelta(hours=23))
    with pytest.raises(PolicyRefused, match="expired at 2026-11-23 12:00 UTC"):
        check_signed(grant(), request(), SIGNER, now=NOW + VALID)


@pytest.mark.parametrize(
    "change", [{"max_minutes": 21}, {"max_usd": 2.0}, {"endpoint": "http://10.0.0.1"}, {"service": ""}, {"cells": 2}]
)
def test_it_covers_that_sweep_alone(change: dict) -> None:
    """More of anything is another sweep: refused, whether the request or the grant was changed."""
    if "cells" in change:
        change = {"cells": (*request().cells, request().cells[0].with_(concurrency=64))}
    with pytest.raises(PolicyRefused, match="covers another sweep"):
        check_signed(grant(), request(**change), SIGNER, now=NOW)
    with pytest.raises(PolicyRefused, match="not signed by this installation"):
        check_signed(grant().with_(request=request(**change)), request(**change), SIGNER, now=NOW)


def test_a_forged_grant_is_refused() -> None:
    """No receipt, a changed one, another key, a later end."""
    for forged in (
        grant().with_(receipt=""),
        grant().with_(receipt="0" * 64),
        sign_grant(grant(), HmacReceiptSigner(b"x" * 32)),
        grant().with_(expires_at=NOW + 2 * VALID),
        grant().with_(approver="eve"),
    ):
        with pytest.raises(PolicyRefused, match="not signed"):
            check_signed(forged, request(), SIGNER, now=NOW)
