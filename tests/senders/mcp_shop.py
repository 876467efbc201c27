"""A server made with the official SDK: a shop's stock, a search for sources, a page of one."""

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("shop")
READS = ToolAnnotations(readOnlyHint=True)


class Stock(BaseModel):
    sku: str
    pieces: int


class Found(BaseModel):
    results: list[dict]


class Page(BaseModel):
    title: str
    text: str


@server.tool(annotations=READS)
def get_stock(sku: str = "any") -> Stock:
    """Pieces in stock."""
    return Stock(sku=sku, pieces=7)


@server.tool(annotations=READS)
def search(query: str) -> Found:
    """Pages about something."""
    return Found(results=[{"url": "https://a.example/price", "title": "Price", "snippet": query}])


@server.tool(annotations=READS)
def read(url: str) -> Page:
    """The text of a page."""
    return Page(title="Price", text="The price is 12 EUR. It holds until May.")


@server.tool()
def order(sku: str, pieces: int) -> str:
    """Orders pieces."""
    if pieces > 7:
        raise ValueError("only 7 pieces are in stock")
    return f"ordered {pieces} of {sku}"


server.run("stdio")
