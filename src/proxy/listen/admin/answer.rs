//! What each operation does.

use serde::Serialize;

use super::{
    super::{Front, deck::Deck},
    advance::advance,
    ask::{self, Ask, Operation, Problem, What, body},
};
use crate::{
    fault::Stranger,
    report::{
        Miss,
        events::Event,
        live::{PlanState, TakeState, Waiting},
    },
};

#[derive(Serialize)]
struct Takes {
    takes: Vec<TakeState>,
}

#[derive(Serialize)]
struct Events {
    events: Vec<Event>,
}

#[derive(Serialize)]
struct Misses {
    misses: Vec<Miss>,
}

#[derive(Serialize)]
struct Plans {
    plans: Vec<PlanState>,
}

#[derive(Serialize)]
struct Switched {
    name: String,
    on: bool,
}

/// Names of a take.
#[derive(Serialize)]
struct Named {
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    take: String,
}

#[derive(Serialize)]
struct Reset {
    reset: Vec<Named>,
}

#[derive(Serialize)]
struct WaitingNow {
    clock: &'static str,
    now_ms: u64,
    waiting: Vec<Waiting>,
}

pub(super) async fn answer(front: &Front, ask: Ask, bytes: &[u8]) -> Result<Vec<u8>, Problem> {
    match ask.operation {
        Operation::Takes => json(&Takes { takes: front.takes().iter().map(|take| take.state()).collect() }),
        Operation::EndTake => end_take(front, body(bytes)?),
        Operation::Events => {
            if let Some(name) = &ask.filter.server {
                front.server(Some(name)).map_err(Problem::bad)?;
            }
            let events = front.recent.as_ref().map(|recent| recent.all()).unwrap_or_default();
            let events: Vec<Event> = events.into_iter().filter(|event| ask.filter.fits(event)).collect();
            json(&Events { events: ask.filter.last(&events).to_vec() })
        }
        Operation::Misses => json(&Misses { misses: front.report(false).misses }),
        Operation::Plan => json(&Plans { plans: front.takes().iter().map(|take| take.plan()).collect() }),
        Operation::Scenario => scenario(front, body(bytes)?),
        Operation::Reset => reset(front, body(bytes)?),
        Operation::Report => json(&front.report(false)),
        Operation::Waiting => {
            let clock = &front.shared.clock;
            json(&WaitingNow {
                clock: if clock.is_wound() { "manual" } else { "real" },
                now_ms: clock.now().played / 1000,
                waiting: front.waiting(),
            })
        }
        Operation::Advance => json(&advance(front, body(bytes)?).await?),
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(value)
        .map_err(|error| Problem::new(hyper::StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

fn end_take(front: &Front, ask: ask::EndTake) -> Result<Vec<u8>, Problem> {
    let deck = front.server(ask.server.as_deref()).map_err(Problem::nothing)?;
    let report = deck.end(&ask.take).ok_or_else(|| no_take(&ask.take, [deck]))?;
    json(&report)
}

fn scenario(front: &Front, ask: ask::Scenario) -> Result<Vec<u8>, Problem> {
    let mut is_there = false;
    for deck in &front.decks {
        is_there |= deck.has_scenario(&ask.name).map_err(Problem::conflict)?;
    }
    let names: Vec<&str> = front.decks.iter().map(|deck| &*deck.name).collect();
    if let Some(error) = front.decks.iter().find_map(|deck| deck.for_nobody(&ask.name, &names)) {
        return Err(Problem::conflict(error.text));
    }
    if let Some(stranger) = Stranger::to_all(front.decks.iter().map(|deck| deck.strangers(&ask.name))).first()
    {
        return Err(Problem::conflict(stranger.to_string()));
    }
    if !is_there {
        let mut names: Vec<String> = Vec::new();
        for take in front.takes() {
            names.extend(take.plan().scenarios.into_iter().map(|scenario| scenario.name));
        }
        names.sort_unstable();
        names.dedup();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Problem::nothing(format!("there is no scenario `{}`; there is {names}", ask.name)));
    }
    front.decks.iter().for_each(|deck| deck.switch(&ask.name, ask.on));
    json(&Switched { name: ask.name, on: ask.on })
}

fn reset(front: &Front, ask: ask::Reset) -> Result<Vec<u8>, Problem> {
    let decks: Vec<&Deck> = match &ask.server {
        Some(name) => vec![front.server(Some(name)).map_err(Problem::nothing)?],
        None => front.decks.iter().collect(),
    };
    let mut reset = Vec::new();
    for take in decks.iter().flat_map(|deck| deck.takes()) {
        let state = take.state();
        if ask.take.as_ref().is_none_or(|wanted| *wanted == state.take) {
            take.reset(ask.what != What::Played, ask.what != What::Faults);
            reset.push(Named { server: state.server, take: state.take });
        }
    }
    match ask.take {
        Some(name) if reset.is_empty() => Err(no_take(&name, decks)),
        _ => json(&Reset { reset }),
    }
}

/// That nothing is called so, and what is there.
fn no_take<'a>(name: &str, decks: impl IntoIterator<Item = &'a Deck>) -> Problem {
    let mut names: Vec<String> = decks
        .into_iter()
        .flat_map(Deck::takes)
        .map(|take| match take.state().take {
            name if name.is_empty() => "the default one, whose name is empty".to_owned(),
            name => format!("`{name}`"),
        })
        .collect();
    names.dedup();
    Problem::nothing(format!("there is no take `{name}`; there is {}", names.join(", ")))
}
