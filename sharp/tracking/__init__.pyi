from .following import follow as follow
from .following import make_tracker as make_tracker
from .following import tracked as tracked
from .tracker import TrackedRun as TrackedRun
from .tracker import Tracker as Tracker
