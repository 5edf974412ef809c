"""The page that shows the OpenAPI document in a browser: three files of this package, nothing from outside."""

from importlib.resources import files
from typing import Any

from litestar import Request, get
from litestar.handlers import HTTPRouteHandler

from api.request_context import of
from api.response import Answer, Headers
from api.services import Services

FILES = {
    "/docs": ("index.html", b"text/html; charset=utf-8"),
    "/docs/page.css": ("page.css", b"text/css; charset=utf-8"),
    "/docs/page.js": ("page.js", b"text/javascript; charset=utf-8"),
}
PAGES = frozenset(path.encode() for path in FILES)
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
Page = tuple[bytes, Headers]


def pages(services: Services) -> HTTPRouteHandler:
    """Read without a token, which the page asks for before it fetches the document."""
    folder = files("api.docs_page")
    served: dict[str, Page] = {
        path: (
            (folder / name).read_bytes(),
            [(b"content-type", media), (b"content-security-policy", POLICY)],
        )
        for path, (name, media) in FILES.items()
    }

    @get(list(FILES))
    async def page(request: Request[Any, Any, Any]) -> Answer:
        context = of(request.scope)
        services.links.check_host(context)
        body, headers = served[context.raw_path.decode()]
        return Answer(context, 200, body, [*headers])

    return page
