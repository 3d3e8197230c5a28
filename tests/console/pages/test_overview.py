"""The first page: the cluster as the survey sees it."""

from __future__ import annotations

import asyncio

import pytest

from tests.console.conftest import TwoNodes
from tests.console.console_rig import logged_in
from tests.console.pages.messages_of_nodes import fill, texts

pytestmark = pytest.mark.process


def test_nodes_links_findings_and_picture(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await fill(two_nodes.first, "seen", texts(2))
        async with logged_in(*two_nodes.places) as user:
            page = await user.get("/")
            while "still being asked" in page.words():
                page = await user.get("/")
            assert page.row("one")[0] == f"one {two_nodes.first}" and page.row("two")
            captions = [str(each.text_content()) for each in page.document.iter("caption")]
            assert captions == ["Nodes", "Links"]
            links = page.document.xpath("//table[caption='Links']//tbody/tr")
            assert [str(link.text_content()).split()[:3] for link in links] == [["onetwolinked–0"], ["twoonelinked–0"]]
            async with user.session.get(f"{user.address}picture.svg") as answer:
                assert answer.content_type == "image/svg+xml"
                text = await answer.text()
            assert ">one<" in text and ">two<" in text and "<script" not in text and "style=" not in text

    asyncio.run(main())


def test_who_nobody_has_agreed_to_is_a_finding_that_leads_to_the_form(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with logged_in(two_nodes.first, user="mover") as user:
            page = await user.get("/")
            while "still being asked" in page.words():
                page = await user.get("/")
            assert f"was not asked at {two_nodes.second}" in page.words()
            assert "#waiting" in page.links() and page.document.get_element_by_id("waiting") is not None

    asyncio.run(main())


def test_a_slow_survey_hides_no_other_page(two_nodes: TwoNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atalanta.console.nodes.surveys.FIRST_S", 0)

    async def main() -> None:
        async with logged_in(two_nodes.first) as user:
            page = await user.get("/", allow_redirects=False)
            if "being asked" in page.words():
                assert page.headers["Refresh"] == "2"
            while "being asked. This page" in page.words():
                page = await user.get("/")
            assert page.row("one")

    asyncio.run(main())


def test_a_cluster_that_is_away_is_an_answer_in_time(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with logged_in(two_nodes.first) as user:
            assert (await user.get("/picture.svg")).status == 200
            assert (await user.get("/queues?node=none")).status == 404

    asyncio.run(main())
