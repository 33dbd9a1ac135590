"""Campaigns of simulations: many seeds of a target, their sum, and the shrunk run of each broken property.

``campaign`` tries seeds, ``trial`` also shrinks and reports what they find, ``soak`` goes on until it is stopped.
"""

from lifefold.interpreters.campaign.campaign import Tally, campaign
from lifefold.interpreters.campaign.report import Report, trial
from lifefold.interpreters.campaign.shrink import shrunk

__all__ = ["Report", "Tally", "campaign", "shrunk", "trial"]
