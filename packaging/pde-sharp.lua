local root = "/shared/pde-sharp/1"

help([[Language models write, judge and refine numerical PDE solvers: the command sharp.]])
whatis("Name: pde-sharp")
prepend_path("PATH", pathJoin(root, "bin"))
