from .method import run_method as run_method
from .sampling import best_of_n as best_of_n
from .sampling import single_call as single_call
