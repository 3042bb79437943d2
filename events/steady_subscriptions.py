"""A broker's table of subscriptions that may change while a message is on its way through it.

The embedded broker walks its table with waits in between. Somebody who connects or leaves meanwhile would
break that walk off, and the message would be lost for everybody further down.
"""

from collections.abc import ItemsView

from amqtt.session import Session

Subscribers = list[tuple[Session, int]]


class SteadySubscriptions(dict[str, Subscribers]):
    """By topic filter who subscribed, at which QoS."""

    def items(self) -> ItemsView[str, Subscribers]:  # type: ignore[override] # the view of a copy
        """The table as it is now; what changes later does not touch it."""
        return {name: list(subscribers) for name, subscribers in super().items()}.items()
