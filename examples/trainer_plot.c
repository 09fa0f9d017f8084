/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trainer_plot.c - two curves of the loss by the seconds of the training, as text
 * for a terminal and as SVG for a browser.
 */
#include "trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS 66
#define LINES 16
#define WIDTH 720
#define HEIGHT 420
#define LEFT 64   /* of the axes, in the SVG */
#define BOTTOM 48
#define MARGIN 24

static const struct style {
	const char *name, *color;
	char mark;
} styles[2] = {
	{ "the cluster", "#c0392b", '#' },
	{ "one thread", "#2471a3", 'o' },
};

/* What the axes have to hold. */
struct range {
	double seconds, least, most; /* 0..seconds, least..most of the loss */
};

static struct range
range_of(const struct curves *c)
{
	struct range r = { 0, INFINITY, -INFINITY };
	size_t i;
	int k;

	for (i = 0; i < c->n; i++) {
		for (k = 0; k < 2; k++) {
			r.seconds = fmax(r.seconds, c->points[i].seconds[k]);
			r.least = fmin(r.least, c->points[i].loss[k]);
			r.most = fmax(r.most, c->points[i].loss[k]);
		}
	}
	/* Never nothing, which would be divided by. */
	r.seconds = fmax(r.seconds, 1e-6);
	r.most = fmax(r.most, r.least + 1e-6);
	return r;
}

/* Where a number of from..to is, 0 ... 1. */
static double
place(double number, double from, double to)
{
	return (number - from) / (to - from);
}

/* ---- text ---- */

void
plot_text(const struct curves *c)
{
	const struct range r = range_of(c);
	char lines[LINES][COLUMNS + 1];
	size_t i;
	int k, x, y;

	for (y = 0; y < LINES; y++) {
		memset(lines[y], ' ', COLUMNS);
		lines[y][COLUMNS] = '\0';
	}
	for (k = 1; k >= 0; k--) {
		for (i = 0; i < c->n; i++) {
			x = (int)lround((COLUMNS - 1) *
					place(c->points[i].seconds[k], 0,
					      r.seconds));
			y = (int)lround((LINES - 1) *
					place(c->points[i].loss[k], r.most,
					      r.least));
			lines[y][x] = styles[k].mark;
		}
	}
	printf("loss\n");
	for (y = 0; y < LINES; y++)
		printf("%7.4f |%s\n",
		       r.most + (r.least - r.most) * y / (LINES - 1), lines[y]);
	printf("        +");
	for (x = 0; x < COLUMNS; x++)
		putchar('-');
	printf("\n         0%*.2f s\n", COLUMNS - 3, r.seconds);
	printf("         %c the cluster   %c one thread\n", styles[0].mark,
	       styles[1].mark);
}

/* ---- SVG ---- */

static double
x_of(double seconds, const struct range *r)
{
	return LEFT + place(seconds, 0, r->seconds) * (WIDTH - LEFT - MARGIN);
}

static double
y_of(double loss, const struct range *r)
{
	return MARGIN + place(loss, r->most, r->least) *
				(HEIGHT - BOTTOM - MARGIN);
}

/* Lines and numbers at five places of each axis. */
static void
draw_axes(FILE *f, const struct range *r)
{
	int i;

	for (i = 0; i <= 4; i++) {
		double seconds = r->seconds * i / 4;
		double loss = r->least + (r->most - r->least) * i / 4;
		double x = x_of(seconds, r), y = y_of(loss, r);

		fprintf(f, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", LEFT,
			y, WIDTH - MARGIN);
		fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4f"
			"</text>\n", LEFT - 6, y + 4, loss);
		fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">"
			"%.2f s</text>\n", x, HEIGHT - BOTTOM + 20, seconds);
	}
}

static void
draw_curve(FILE *f, const struct curves *c, int k, const struct range *r)
{
	int y = MARGIN + 8 + 20 * k;
	size_t i;

	fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" "
		"points=\"", styles[k].color);
	for (i = 0; i < c->n; i++)
		fprintf(f, "%.1f,%.1f ", x_of(c->points[i].seconds[k], r),
			y_of(c->points[i].loss[k], r));
	fprintf(f, "\"/>\n<text x=\"%d\" y=\"%d\" fill=\"%s\" "
		"text-anchor=\"end\">%s</text>\n", WIDTH - MARGIN, y,
		styles[k].color, styles[k].name);
}

bool
plot_svg(const char *path, const struct curves *c)
{
	const struct range r = range_of(c);
	FILE *f = fopen(path, "w");
	bool ok;

	if (f == NULL)
		return false;
	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		WIDTH, HEIGHT);
	draw_axes(f, &r);
	draw_curve(f, c, 1, &r);
	draw_curve(f, c, 0, &r);
	fprintf(f, "<text x=\"%d\" y=\"%d\">loss on samples that are held out, "
		"by seconds of training</text>\n</svg>\n", LEFT, HEIGHT - 8);
	ok = !ferror(f);
	return fclose(f) == 0 && ok;
}
