from tests.helpers.documents.report_runs import finished as finished
