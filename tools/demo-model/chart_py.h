/* chart_py.h - the program that the demo model writes for a data file */
#ifndef OTARI_TOOLS_DEMO_MODEL_CHART_PY_H
#define OTARI_TOOLS_DEMO_MODEL_CHART_PY_H

/* Follows a line `wanted = "NAME"`. Draws chart.png with matplotlib, else chart.svg by itself. */
extern const char chart_py[];

#endif
