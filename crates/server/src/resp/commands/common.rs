//! `COMMON user user [user …] [LIMIT n] [CURSOR c]`: the users that all of some users follow, by id. All at once as an
//! array or, with one of the options, a page like that of `KNOWN`.

use kinfolk_core::graph::{Side, UserSet};

use super::known::write_page;
use super::prelude::*;
use super::sinter::collect;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "common",
        summary: "the users that all of some users follow, by id",
        syntax: "user user [user …] [LIMIT limit] [CURSOR cursor]",
        complexity: "O(N*M) where N is the size of the smallest set and M is the number of sets",
        example: &["7", "8"],
        arity: -3,
        operation: Operation::Common,
        cost: Cost::Rows,
        is_abandonable: true,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    // No id is one of these words.
    let is_option = |word: &[u8]| is(word, "LIMIT") || is(word, "CURSOR");
    let users = request.arguments.iter().skip(1).take_while(|&word| !is_option(word)).count();
    let of = request.ids(1).take(users).collect::<Result<Vec<_>>>()?;
    if of.is_empty() {
        return Err(syntax_error());
    }
    if users + 1 < request.arguments.len() {
        let page = request.page(1 + users)?;
        write_page(request.service.common(request.reading(), &of, page).await?, out);
        return Ok(());
    }
    let sets: Vec<UserSet> = of.into_iter().map(|of| UserSet { side: Side::Following, of }).collect();
    let found = collect(request, &sets).await?;
    // Unlike a set, this has an order.
    out.id_list(&found);
    Ok(())
}
