//! Small line charts as SVG, for values over the seconds of a run or over sizes: panels one below the other with a common axis.

use crate::measurement::{Series, number};

const WIDTH: f64 = 900.0;
const PANEL: f64 = 200.0;
/// Around the panels, and between them.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 110.0;
const TOP: f64 = 100.0;
const GAP: f64 = 56.0;
const BOTTOM: f64 = 56.0;

const COLOURS: [&str; 3] = ["#1f6feb", "#8b949e", "#d29922"];
const STYLE: &str = "text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}\
                     .title{font-size:18px;font-weight:600}.sub{font-size:12px;fill:#59636e}\
                     .panel{font-size:13px;font-weight:600}.tick{font-size:11px;fill:#59636e}\
                     .label{font-size:12px;font-weight:600}";

/// A page of panels.
#[derive(Debug)]
pub struct Plot<'a> {
    pub title: &'a str,
    /// In one line or two.
    pub subtitle: &'a str,
    pub axis: Axis<'a>,
    pub panels: Vec<Panel<'a>>,
}

/// What the values of a line are taken at.
#[derive(Clone, Copy, Debug)]
pub enum Axis<'a> {
    /// Each second of a run.
    Seconds,
    /// Something with a name.
    Labels { title: &'a str, labels: &'a [String] },
}

/// One panel: lines that share an axis.
#[derive(Debug)]
pub struct Panel<'a> {
    pub title: &'a str,
    /// Each with its label.
    pub lines: Vec<(&'a str, &'a Series)>,
    /// A bound to draw, with its label, where it is near enough.
    pub bound: Option<(f64, &'a str)>,
    pub values: Values,
}

/// How the axis of values goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// From zero.
    Linear,
    /// By powers of ten: for values that are mostly small and sometimes large.
    Logarithmic,
}

impl Plot<'_> {
    pub fn svg(&self) -> String {
        let panels = self.panels.len() as f64;
        let height = TOP + panels * PANEL + (panels - 1.0) * GAP + BOTTOM;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
             <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#ffffff\"/>\n",
            escape(self.title)
        );
        svg += &text(24.0, 34.0, "title", "start", self.title);
        for (at, line) in self.subtitle.lines().enumerate() {
            svg += &text(24.0, 52.0 + 16.0 * at as f64, "sub", "start", line);
        }
        for (at, panel) in self.panels.iter().enumerate() {
            let top = TOP + at as f64 * (PANEL + GAP);
            svg += &panel.svg(top, self.axis, at + 1 == self.panels.len());
        }
        svg + "</svg>\n"
    }
}

/// Where the values of a panel go.
#[derive(Clone, Copy)]
struct Scale {
    top: f64,
    seconds: f64,
    values: Values,
    lowest: f64,
    highest: f64,
}

impl Scale {
    fn x(self, second: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * second / self.seconds.max(1.0)
    }

    fn y(self, value: f64) -> f64 {
        let share = match self.values {
            Values::Linear => value / self.highest,
            Values::Logarithmic => {
                (value.max(self.lowest) / self.lowest).log10() / (self.highest / self.lowest).log10()
            }
        };
        self.top + PANEL * (1.0 - share)
    }
}

impl Panel<'_> {
    fn svg(&self, top: f64, axis: Axis<'_>, is_last: bool) -> String {
        let values = || self.lines.iter().flat_map(|(_, series)| series.values.iter().copied());
        let largest = values().fold(0.0, f64::max);
        // A bound far above all lines would press them flat.
        let bound = self.bound.filter(|(bound, _)| *bound <= largest * 4.0);
        let most = bound.map_or(largest, |(bound, _)| bound.max(largest)) * 1.05;
        let seconds = self.lines.iter().map(|(_, series)| series.values.len()).max().unwrap_or(0) as f64;
        let (lowest, highest, step) = match self.values {
            Values::Linear => {
                let step = nice_step(most, 5.0);
                (0.0, (most / step).ceil() * step, step)
            }
            Values::Logarithmic => {
                let least = values().filter(|&value| value > 0.0).fold(most, f64::min);
                let power = |value: f64| 10_f64.powf(value);
                (power(least.log10().floor()), power(most.log10().ceil()), 10.0)
            }
        };
        let scale = Scale { top, seconds, values: self.values, lowest, highest };
        let unit = self.lines.first().map_or("", |(_, series)| series.unit.as_str());
        let mut svg = text(LEFT, top - 12.0, "panel", "start", &format!("{} ({unit})", self.title));
        svg += &values_axis(scale, step);
        svg += &common_axis(scale, axis, is_last);
        if let Some((bound, label)) = bound {
            let y = scale.y(bound);
            svg += &rule((LEFT, y), (WIDTH - RIGHT, y), "#cf222e\" stroke-dasharray=\"5 4");
            svg += &text(WIDTH - RIGHT + 8.0, y + 4.0, "tick", "start", label);
        }
        // The first line is the one that matters: it is drawn last, above the others.
        for (at, (_, series)) in self.lines.iter().enumerate().rev() {
            svg += &line(scale, &series.values, COLOURS[at % COLOURS.len()]);
        }
        svg + &self.legend(top)
    }

    /// Above the panel on the right, so that it never lies on a line.
    fn legend(&self, top: f64) -> String {
        let mut svg = String::new();
        let mut end = WIDTH - RIGHT;
        for (at, (label, _)) in self.lines.iter().enumerate().rev() {
            svg += &text(end, top - 12.0, "label", "end", label).replacen(
                "<text",
                &format!("<text style=\"fill:{}\"", COLOURS[at % COLOURS.len()]),
                1,
            );
            end -= 7.5 * label.chars().count() as f64 + 18.0;
        }
        svg
    }
}

fn values_axis(scale: Scale, step: f64) -> String {
    let mut svg = String::new();
    let ticks = match scale.values {
        Values::Linear => (scale.highest / step).round() as i32,
        Values::Logarithmic => (scale.highest / scale.lowest).log10().round() as i32,
    };
    for tick in 0..=ticks {
        let value = match scale.values {
            Values::Linear => f64::from(tick) * step,
            Values::Logarithmic => scale.lowest * step.powi(tick),
        };
        let y = scale.y(value);
        svg += &rule((LEFT, y), (WIDTH - RIGHT, y), if tick == 0 { "#8c959f" } else { "#e6eaef" });
        svg += &text(LEFT - 8.0, y + 4.0, "tick", "end", &number(value));
    }
    svg
}

/// The marks below a panel; the last panel names them.
fn common_axis(scale: Scale, axis: Axis<'_>, is_last: bool) -> String {
    let mut svg = String::new();
    let bottom = scale.top + PANEL;
    let (title, marks): (&str, Vec<(f64, String)>) = match axis {
        Axis::Seconds => {
            let step = nice_step(scale.seconds, 10.0).max(1.0);
            let seconds = (0..=(scale.seconds / step).floor() as u32).map(|tick| f64::from(tick) * step);
            ("seconds since the start", seconds.map(|second| (second, number(second))).collect())
        }
        Axis::Labels { title, labels } => {
            let places = labels.iter().enumerate();
            (title, places.map(|(at, label)| (at as f64 + 0.5, label.clone())).collect())
        }
    };
    for (at, label) in marks {
        let x = scale.x(at);
        svg += &rule((x, bottom), (x, bottom + 4.0), "#8c959f");
        if is_last {
            svg += &text(x, bottom + 18.0, "tick", "middle", &label);
        }
    }
    if is_last {
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        svg += &text(middle, bottom + 38.0, "tick", "middle", title);
    }
    svg
}

fn line(scale: Scale, values: &[f64], colour: &str) -> String {
    let point = |(second, &value): (usize, &f64)| {
        format!("{:.1},{:.1}", scale.x(second as f64 + 0.5), scale.y(value))
    };
    let points: Vec<String> = values.iter().enumerate().map(point).collect();
    format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\" stroke-linejoin=\"round\"/>\n",
        points.join(" ")
    )
}

fn rule(from: (f64, f64), to: (f64, f64), colour: &str) -> String {
    let ((x1, y1), (x2, y2)) = (from, to);
    format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>\n")
}

fn text(x: f64, y: f64, class: &str, anchor: &str, content: &str) -> String {
    let content = escape(content);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\" text-anchor=\"{anchor}\">{content}</text>\n")
}

fn escape(content: &str) -> String {
    content.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The smallest of 1, 2 and 5 times a power of ten with which at most so many steps reach a value.
fn nice_step(value: f64, steps_max: f64) -> f64 {
    let least = (value / steps_max).max(1e-3);
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least * 0.999);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (value, step) in
            [(10.0, 2.0), (7.3, 2.0), (99.0, 20.0), (0.4, 0.1), (1_800.0, 500.0), (0.0, 0.001)]
        {
            assert!((nice_step(value, 5.0) - step).abs() < 1e-9, "{value} has {}", nice_step(value, 5.0));
        }
    }

    #[test]
    fn lines_stay_within_their_panel() {
        let values = vec![0.5, 3.0, 1.0];
        let series = Series {
            key: "a".to_owned(),
            what: "a".to_owned(),
            unit: "ms".to_owned(),
            values: values.clone(),
        };
        let panel = Panel {
            title: "p99 < bound",
            lines: vec![("p99", &series)],
            bound: Some((4.0, "target")),
            values: Values::Linear,
        };
        let svg =
            Plot { title: "a run", subtitle: "some users", axis: Axis::Seconds, panels: vec![panel] }.svg();
        assert!(svg.contains("p99 &lt; bound (ms)") && svg.contains(">target<"), "{svg}");
        let points = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("");
        let points: Vec<(f64, f64)> = points
            .split(' ')
            .filter_map(|point| point.split_once(','))
            .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
            .collect();
        assert_eq!(points.len(), values.len());
        assert!(
            points
                .iter()
                .all(|&(x, y)| (LEFT..=WIDTH - RIGHT).contains(&x) && (TOP..=TOP + PANEL).contains(&y))
        );
    }

    /// A value ten times as large is one step higher.
    #[test]
    fn large_values_do_not_press_small_ones_flat() {
        let series = Series::new("a", "a", "ms", vec![0.2, 2.0, 20.0]);
        let panel =
            Panel { title: "p99", lines: vec![("p99", &series)], bound: None, values: Values::Logarithmic };
        let svg =
            Plot { title: "a run", subtitle: "some users", axis: Axis::Seconds, panels: vec![panel] }.svg();
        assert!([">0.1<", ">1<", ">10<", ">100<"].iter().all(|tick| svg.contains(tick)), "{svg}");
        let points = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("");
        let heights: Vec<f64> =
            points.split(' ').filter_map(|point| point.split_once(',')?.1.parse().ok()).collect();
        let [low, middle, high] = heights[..] else { panic!("{heights:?}") };
        assert!(((low - middle) - (middle - high)).abs() < 0.2, "{heights:?}");
        assert!(low < TOP + PANEL && high > TOP);
    }

    #[test]
    fn places_can_have_names() {
        let labels = ["1".to_owned(), "10".to_owned()];
        let series = Series::new("a", "a", "ms", vec![0.5, 3.0]);
        let panel =
            || Panel { title: "cost", lines: vec![("a", &series)], bound: None, values: Values::Linear };
        let axis = Axis::Labels { title: "edges", labels: &labels };
        let svg = Plot { title: "a graph", subtitle: "grows", axis, panels: vec![panel(), panel()] }.svg();
        assert_eq!(svg.matches(">10<").count(), 1, "the last panel names them: {svg}");
        assert_eq!(svg.matches(">edges<").count(), 1);
    }
}
