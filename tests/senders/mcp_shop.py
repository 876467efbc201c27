"""A server made with the official SDK: a shop's stock, a search for sources, a page of one."""

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("shop")
READS = ToolAnnotations(readOnlyHint=True)


class Stock(BaseModel):
    sku: str
    pieces: int


class Envelope(BaseModel):
    """What research reads."""

    status: str
    data: dict


@server.tool(annotations=READS)
def get_stock(sku: str = "any") -> Stock:
    """Pieces in stock."""
    return Stock(sku=sku, pieces=7)


@server.tool(annotations=READS)
def search(query: str) -> Envelope:
    """Pages about something."""
    found = {"url": "https://a.example/price", "title": "Price", "snippet": query, "score": 0.9}
    return Envelope(status="ok", data={"results": [found]})


@server.tool(annotations=READS)
def read(url: str) -> Envelope:
    """The text of a page."""
    body = "The price of the widget is 12 EUR. The price holds until May."
    page = {"url": url, "title": "Price", "published_at": "2026-11-01", "body": body}
    return Envelope(status="ok", data=page)


@server.tool()
def order(sku: str, pieces: int) -> str:
    """Orders pieces."""
    if pieces > 7:
        raise ToolError("only 7 pieces are in stock")
    return f"ordered {pieces} of {sku}"


server.run("stdio")
