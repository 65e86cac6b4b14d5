"""What is in the shop's storeroom."""

from typing import Literal, TypedDict

Warehouse = Literal["north", "south"]


class Item(TypedDict):
    sku: str
    warehouse: Warehouse
    pieces: int


STOCK: list[Item] = [
    {"sku": "OWL-MUG", "warehouse": "north", "pieces": 40},
    {"sku": "OWL-MUG", "warehouse": "south", "pieces": 3},
    {"sku": "OWL-HAT", "warehouse": "south", "pieces": 0},
]


def stock_level(sku: str, warehouse: Warehouse | None = None) -> int:
    """Counts the pieces of an article.

    Args:
        sku: Article number, such as OWL-MUG.
        warehouse: Only this warehouse.
    """
    known = [item for item in STOCK if item["sku"] == sku]
    if not known:
        raise ValueError(f"there is no article {sku}")
    return sum(item["pieces"] for item in known if warehouse in (None, item["warehouse"]))


def stock_low(fewer_than: int = 5) -> list[Item]:
    """Lists articles that run out.

    Args:
        fewer_than: Only articles with fewer pieces than this.
    """
    return [item for item in STOCK if item["pieces"] < fewer_than]
