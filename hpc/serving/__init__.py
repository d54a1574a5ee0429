"""Language-model servers as jobs: started, verified, announced, watched, handed over and ended.

In the job, a supervisor (`python -P -m hpc.serving`) starts any server that speaks the OpenAI-compatible interface
and announces it in the campaign's folder of services once it answers for the right model. On the controller's side,
`ServerPool` sees to it that there are jobs for the models in use. Nothing here knows what models are asked.
"""
