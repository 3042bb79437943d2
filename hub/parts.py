"""The parts of a running hub, as its API reaches them."""

from dataclasses import dataclass

from hub.brigade import Brigade
from hub.bus import Bus
from hub.inbox import Inbox
from hub.incidents import IncidentDesk
from hub.kitchen import Kitchen
from hub.orders import OrderDesk
from hub.people import PeopleDesk
from hub.recalls import RecallDesk
from hub.registrar import Registrar


@dataclass(frozen=True, slots=True)
class Parts:
    """What a request may be passed to."""

    kitchen: Kitchen
    brigade: Brigade
    orders: OrderDesk
    people: PeopleDesk
    registrar: Registrar
    inbox: Inbox
    bus: Bus
    recalls: RecallDesk
    incidents: IncidentDesk
