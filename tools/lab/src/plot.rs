//! Plots as SVG: axes with units, a legend, and a sentence that says what to see; readable in light and dark mode.
//!
//! Drawn by `plotters`. Data have colours that stand out on white and on black; paper, ink and grid lines change with the reader's
//! mode, by a style sheet in the picture.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::report::escaped;

pub use Colour::*;
pub use Mark::*;

/// A picture of one or more panels, one above the other.
///
/// ```
/// use muse_lab::plot::{Axis, Colour, Mark, Panel, Plot};
/// let panel = Panel::new(Axis::new("time (s)", 0.0, 2.0), Axis::new("distance (m)", 0.0, 4.0));
/// let panel = panel.with("a line", Colour::Blue, Mark::Line, [(0.0, 1.0), (2.0, 3.0)]);
/// let svg = Plot::new("Title", "What to see.").panel(panel).svg();
/// assert!(svg.starts_with("<svg ") && svg.contains("distance (m)") && svg.contains("a line"));
/// ```
#[derive(Clone, Debug)]
pub struct Plot {
    title: String,
    says: String,
    panels: Vec<Panel>,
}

/// A system of coordinates with data in it.
#[derive(Clone, Debug)]
pub struct Panel {
    x: Axis,
    y: Axis,
    height: u32,
    series: Vec<Series>,
}

/// An axis: what it measures and in which unit, and from where to where.
#[derive(Clone, Debug)]
pub struct Axis {
    label: String,
    from: f64,
    to: f64,
    /// The only places with labels, if they are given.
    names: Vec<(f64, String)>,
}

/// Data of one sort.
#[derive(Clone, Debug)]
pub struct Series {
    name: String,
    colour: Colour,
    mark: Mark,
    points: Vec<(f64, f64)>,
}

/// The way in which data are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// Joined by a line.
    Line,
    /// By a thick line.
    Thick,
    /// By a broken line.
    Dashed,
    /// Joined by a line, with a dot each.
    Joined,
    /// A dot each.
    Dots,
    /// A small dot each.
    Specks,
    /// A ring each.
    Rings,
    /// A cross each.
    Crosses,
    /// A column each, from 0 up, so wide in units of x.
    Columns(f64),
    /// Pairs of points are the corners of shaded boxes.
    Shade,
}

/// The colour in which data are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Mostly for what is so.
    Blue,
    /// Mostly for what is shown.
    Orange,
    /// Mostly for what is good.
    Green,
    /// Mostly for what is bad.
    Red,
    /// For more.
    Purple,
    /// For what stands behind.
    Grey,
}

impl Plot {
    /// A picture with a title, and a sentence that says what to see.
    pub fn new(title: &str, says: &str) -> Self {
        Self {
            title: title.to_owned(),
            says: says.to_owned(),
            panels: Vec::new(),
        }
    }

    /// Adds a panel below those before.
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// The picture, the same bytes for the same data.
    pub fn svg(&self) -> String {
        let mut text = String::new();
        let head = self.head_height();
        let height = head + self.panels.iter().map(Panel::height).sum::<u32>();
        {
            let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
            self.draw(&root, head)
                .and_then(|()| root.present())
                .expect("a string takes every picture");
        }
        self.dressed(&text)
    }

    fn draw(&self, root: &Area<'_>, head: u32) -> Drawn {
        root.fill(&PAPER)?;
        let bold = ("sans-serif", 18)
            .into_font()
            .style(FontStyle::Bold)
            .color(&INK);
        root.draw_text(&self.title, &bold, (MARGIN, 12))?;
        let plain = font(TEXT);
        for (line, y) in wrapped(&self.says).iter().zip((40..).step_by(19)) {
            root.draw_text(line, &plain, (MARGIN, y))?;
        }
        let (_, mut rest) = root.split_vertically(head);
        for panel in &self.panels {
            let (this, after) = rest.split_vertically(panel.height());
            panel.draw(&this)?;
            rest = after;
        }
        Ok(())
    }

    fn head_height(&self) -> u32 {
        46 + 19 * wrapped(&self.says).len() as u32
    }

    /// With a name for those who cannot see it, and with colours for both modes.
    fn dressed(&self, svg: &str) -> String {
        let (open, rest) = svg.split_once('>').unwrap_or((svg, ""));
        let style: String = [(PAPER, NIGHT_PAPER), (INK, NIGHT_INK), (GRID, NIGHT_GRID)]
            .map(|(day, night)| {
                let (day, night) = (hex(day), hex(night));
                format!("[fill=\"{day}\"]{{fill:{night}}}[stroke=\"{day}\"]{{stroke:{night}}}")
            })
            .concat();
        format!(
            "{open} role=\"img\">\n<title>{}</title>\n<desc>{}</desc>\n<style>@media (prefers-color-scheme: dark){{{style}}}</style>{rest}",
            escaped(&self.title),
            escaped(&self.says),
        )
    }
}

impl Panel {
    /// Without data.
    pub fn new(x: impl Into<Axis>, y: impl Into<Axis>) -> Self {
        Self {
            x: x.into(),
            y: y.into(),
            height: 300,
            series: Vec::new(),
        }
    }

    /// Sets the height of the plane itself, in pixels. Default: 300.
    pub fn tall(mut self, pixels: u32) -> Self {
        self.height = pixels;
        self
    }

    /// Adds data; what comes later is drawn above.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds what these points make.
    pub fn with(
        self,
        name: &str,
        colour: Colour,
        mark: Mark,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        self.series(Series::new(name, colour, mark, points))
    }

    /// Shades a stretch of the abscissa, from zero to the top.
    pub fn shade(self, name: &str, colour: Colour, from: f64, to: f64) -> Self {
        let top = self.y.to;
        self.with(name, colour, Shade, [(from, 0.0), (to, top)])
    }

    fn height(&self) -> u32 {
        self.height + LABELS_BELOW + self.legend_rows() * LEGEND_ROW + 14
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        self.draw_legend(area)?;
        let (_, area) = area.split_vertically(self.legend_rows() * LEGEND_ROW);
        let mut chart = ChartBuilder::on(&area)
            .margin_top(8)
            .margin_bottom(6)
            .margin_left(6)
            .margin_right(RIGHT)
            .x_label_area_size(LABELS_BELOW)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(self.x.from..self.x.to, self.y.from..self.y.to)?;
        let (x, y) = (|x: &f64| self.x.written(*x), |y: &f64| self.y.written(*y));
        chart
            .configure_mesh()
            .x_desc(self.x.label.as_str())
            .y_desc(self.y.label.as_str())
            .x_labels(self.x.labels_max(11))
            .y_labels(self.y.labels_max(self.height as usize / 34 + 1))
            .x_label_formatter(&x)
            .y_label_formatter(&y)
            .max_light_lines(0)
            .bold_line_style(GRID)
            .axis_style(FRAME)
            .label_style(font(13))
            .axis_desc_style(font(TEXT))
            .draw()?;
        for series in &self.series {
            series.draw(&mut chart)?;
        }
        Ok(())
    }

    /// Names of the series, in rows above the plane.
    fn draw_legend(&self, area: &Area<'_>) -> Drawn {
        let (mut x, mut y) = (MARGIN, 4);
        for series in &self.series {
            let width = series.legend_width();
            if x + width > WIDTH as i32 - MARGIN && x > MARGIN {
                (x, y) = (MARGIN, y + LEGEND_ROW as i32);
            }
            series.draw_key(area, x, y + 8)?;
            area.draw_text(&series.name, &font(13), (x + 32, y + 1))?;
            x += width;
        }
        Ok(())
    }

    fn legend_rows(&self) -> u32 {
        let (mut x, mut rows) = (MARGIN, 1);
        for series in &self.series {
            let width = series.legend_width();
            if x + width > WIDTH as i32 - MARGIN && x > MARGIN {
                (x, rows) = (MARGIN, rows + 1);
            }
            x += width;
        }
        rows
    }
}

impl Axis {
    /// An axis with this label, unit included, between these values.
    pub fn new(label: &str, from: f64, to: f64) -> Self {
        Self {
            label: label.to_owned(),
            from,
            to,
            names: Vec::new(),
        }
    }

    /// Names instead of numbers, each at its place.
    pub fn named(mut self, names: impl IntoIterator<Item = (f64, &'static str)>) -> Self {
        let names = names.into_iter().map(|(at, name)| (at, name.to_owned()));
        self.names = names.collect();
        self
    }

    /// So many that every name gets its place.
    fn labels_max(&self, labels: usize) -> usize {
        match self.names.len() {
            0 => labels,
            names => names * 2,
        }
    }

    fn written(&self, value: f64) -> String {
        if !self.names.is_empty() {
            let near = |(at, _): &&(f64, String)| (at - value).abs() < 1e-6;
            let name = self.names.iter().find(near);
            return name.map(|(_, name)| name.clone()).unwrap_or_default();
        }
        let text = format!("{value:.3}");
        let short = text.trim_end_matches('0').trim_end_matches('.');
        if short == "-0" { "0" } else { short }.to_owned()
    }
}

impl From<(&str, f64, f64)> for Axis {
    fn from((label, from, to): (&str, f64, f64)) -> Self {
        Self::new(label, from, to)
    }
}

impl Series {
    /// Data with the name that the legend gives them.
    pub fn new(
        name: &str,
        colour: Colour,
        mark: Mark,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            colour,
            mark,
            points: points.into_iter().collect(),
        }
    }

    /// The highest of its points.
    pub fn highest(&self) -> Option<f64> {
        self.points.iter().map(|point| point.1).reduce(f64::max)
    }

    fn draw(&self, chart: &mut Chart<'_>) -> Drawn {
        let ink = self.colour.ink();
        let points = self.points.iter().copied();
        match self.mark {
            Mark::Line => {
                chart.draw_series(LineSeries::new(points, ink.stroke_width(2)))?;
            }
            Mark::Thick => {
                chart.draw_series(LineSeries::new(points, ink.stroke_width(4)))?;
            }
            Mark::Dashed => {
                let line = DashedLineSeries::new(points, 6, 5, ink.stroke_width(2));
                chart.draw_series(line)?;
            }
            Mark::Joined => {
                chart.draw_series(LineSeries::new(points.clone(), ink.stroke_width(2)))?;
                chart.draw_series(points.map(|point| Circle::new(point, 4, ink.filled())))?;
            }
            Mark::Dots => {
                chart.draw_series(points.map(|point| Circle::new(point, 4, ink.filled())))?;
            }
            Mark::Specks => {
                chart.draw_series(points.map(|point| Circle::new(point, 2, ink.filled())))?;
            }
            Mark::Rings => {
                chart
                    .draw_series(points.map(|point| Circle::new(point, 6, ink.stroke_width(2))))?;
            }
            Mark::Crosses => {
                chart.draw_series(points.map(|point| Cross::new(point, 5, ink.stroke_width(2))))?;
            }
            Mark::Columns(width) => {
                chart.draw_series(points.map(|(x, y)| {
                    let corners = [(x - width / 2.0, 0.0), (x + width / 2.0, y)];
                    Rectangle::new(corners, ink.filled())
                }))?;
            }
            Mark::Shade => {
                let boxes = self.points.chunks_exact(2);
                chart.draw_series(
                    boxes.map(|pair| Rectangle::new([pair[0], pair[1]], ink.mix(SHADE).filled())),
                )?;
            }
        }
        Ok(())
    }

    /// The sign before its name, around `y`.
    fn draw_key(&self, area: &Area<'_>, x: i32, y: i32) -> Drawn {
        let ink = self.colour.ink();
        let middle = (x + 13, y);
        let line = |width| PathElement::new([(x, y), (x + 26, y)], ink.stroke_width(width));
        match self.mark {
            Mark::Line => area.draw(&line(2)),
            Mark::Thick => area.draw(&line(4)),
            Mark::Joined => {
                area.draw(&line(2))?;
                area.draw(&Circle::new(middle, 4, ink.filled()))
            }
            Mark::Dashed => {
                for from in [x, x + 10, x + 20] {
                    let dash = [(from, y), (from + 6, y)];
                    area.draw(&PathElement::new(dash, ink.stroke_width(2)))?;
                }
                Ok(())
            }
            Mark::Dots => area.draw(&Circle::new(middle, 4, ink.filled())),
            Mark::Specks => area.draw(&Circle::new(middle, 2, ink.filled())),
            Mark::Rings => area.draw(&Circle::new(middle, 6, ink.stroke_width(2))),
            Mark::Crosses => area.draw(&Cross::new(middle, 5, ink.stroke_width(2))),
            Mark::Columns(_) => area.draw(&Rectangle::new(
                [(x + 8, y - 6), (x + 18, y + 6)],
                ink.filled(),
            )),
            Mark::Shade => area.draw(&Rectangle::new(
                [(x + 2, y - 6), (x + 24, y + 6)],
                ink.mix(SHADE).filled(),
            )),
        }
    }

    fn legend_width(&self) -> i32 {
        52 + self.name.chars().count() as i32 * 13 / 2
    }
}

impl Colour {
    /// Each stands out on white and on black.
    const fn ink(self) -> RGBColor {
        match self {
            Self::Blue => RGBColor(0x2F, 0x80, 0xD8),
            Self::Orange => RGBColor(0xDD, 0x77, 0x18),
            Self::Green => RGBColor(0x2B, 0x9A, 0x63),
            Self::Red => RGBColor(0xD6, 0x45, 0x45),
            Self::Purple => RGBColor(0x95, 0x66, 0xCE),
            Self::Grey => RGBColor(0x80, 0x88, 0x92),
        }
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// Lines that fit.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last].push_str(word);
        } else if lines[last].len() + word.len() < LINE_CHARACTERS {
            lines[last].push(' ');
            lines[last].push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn hex(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

const PAPER: RGBColor = RGBColor(0xFF, 0xFF, 0xFE);
const INK: RGBColor = RGBColor(0x22, 0x26, 0x2C);
const GRID: RGBColor = RGBColor(0xE4, 0xE7, 0xEB);
const FRAME: RGBColor = RGBColor(0x82, 0x8A, 0x94);
const NIGHT_PAPER: RGBColor = RGBColor(0x15, 0x18, 0x1D);
const NIGHT_INK: RGBColor = RGBColor(0xE4, 0xE8, 0xEE);
const NIGHT_GRID: RGBColor = RGBColor(0x2B, 0x31, 0x39);
/// The opacity of a shade.
const SHADE: f64 = 0.18;
/// Pixels from side to side.
const WIDTH: u32 = 800;
const MARGIN: i32 = 14;
/// Besides the plane, on the left and on the right.
const LEFT: u32 = 76;
const RIGHT: u32 = 22;
const LABELS_BELOW: u32 = 44;
const LEGEND_ROW: u32 = 21;
/// Size of sentences.
const TEXT: u32 = 15;
/// Characters of a sentence in a line.
const LINE_CHARACTERS: usize = 118;
