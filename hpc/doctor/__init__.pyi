from .cluster import NodeCheck as NodeCheck
from .cluster import check_profile as check_profile
from .cluster import examine_submission as examine_submission
from .findings import Finding as Finding
from .findings import failure as failure
from .machine import CheckRequest as CheckRequest
from .machine import examine as examine
