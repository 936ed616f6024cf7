//! What the comments of the demo say, and what becomes of them. How they are written is in `comments`.

use Fate::{Deleted, Edited, Purged, Removed};
use Voice::{Author, Celebrity, Fan, Other};

/// The comments on one post.
pub(super) struct Discussion {
    /// The title of the post.
    pub(super) post: &'static str,
    /// The comments: each is followed by the replies to it, which are one level deeper.
    pub(super) remarks: &'static [Remark],
    /// What becomes of the thread.
    pub(super) ending: Ending,
}

/// A comment.
#[derive(Clone, Copy)]
pub(super) struct Remark {
    /// The number of comments above it.
    pub(super) depth: usize,
    pub(super) by: Voice,
    pub(super) body: &'static str,
    pub(super) fate: Fate,
}

/// The author of a comment.
#[derive(Clone, Copy)]
pub(super) enum Voice {
    /// The author of the post.
    Author,
    Fan,
    Celebrity,
    /// Another followee of the fan (from 1), or another follower of the celebrity (from 20).
    Other(usize),
}

/// What becomes of a comment after all are written.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    Kept,
    /// Its author edits it: the bodies of the later versions.
    Edited(&'static [&'static str]),
    /// Its author deletes it.
    Deleted,
    /// A moderator removes it, with a reason.
    Removed(&'static str),
    /// A moderator purges it.
    Purged,
}

/// What becomes of a thread.
#[derive(Clone, Copy)]
pub(super) enum Ending {
    Open,
    Locked,
    /// Locked and unlocked again.
    Reopened,
}

/// All discussions, the longest first: its post is the newest of the fan's home feed.
pub(super) const DISCUSSIONS: &[Discussion] = &[
    Discussion { post: "What do you cook when nobody is watching?", remarks: SUPPER, ending: Ending::Open },
    Discussion { post: "The harbour bridge closes on Monday", remarks: BRIDGE, ending: Ending::Locked },
    Discussion { post: "The new record is out", remarks: RECORD, ending: Ending::Reopened },
    Discussion { post: "Front row, Hamburg", remarks: FRONT_ROW, ending: Ending::Open },
    Discussion { post: "Adopted: Biscuit, 9, retired greyhound", remarks: BISCUIT, ending: Ending::Open },
    Discussion { post: "Books under 150 pages", remarks: SHORT_BOOKS, ending: Ending::Open },
    Discussion { post: "夜明けの市場", remarks: MARKET, ending: Ending::Open },
    Discussion { post: "Rode the old railway line today", remarks: RAILWAY, ending: Ending::Open },
];

const fn says(depth: usize, by: Voice, body: &'static str) -> Remark {
    Remark { depth, by, body, fate: Fate::Kept }
}

impl Remark {
    const fn then(self, fate: Fate) -> Self {
        Self { fate, ..self }
    }
}

const SUPPER: &[Remark] = &[
    says(0, Fan, "Toast, butter, one anchovy. Repeat."),
    says(1, Author, "That is a dinner party."),
    says(2, Fan, "Only if I sit down for it."),
    says(3, Other(8), "Standing at the counter is how you know that it is real."),
    says(4, Other(31), "Counter? I eat over the sink, like an adult."),
    says(5, Author, "The sink is the best table in the house: it washes itself."),
    says(6, Other(8), "I would like this on a tea towel."),
    says(7, Other(31), "I would like not to wash it."),
    says(1, Other(22), "Which anchovies? This matters."),
    says(2, Fan, "The ones in the glass jar that I tell everybody are too expensive."),
    says(0, Other(3), "Cacio e pepe. Three ingredients, if you count the pepper."),
    says(1, Other(7), "You have to count the pepper. It is in the name."),
    says(1, Other(14), "And the water! Pasta water is an ingredient.").then(Edited(&[
        "And the water! Pasta water is an ingredient. So four.",
        "And the water! Pasta water is an ingredient. So four.\n\n\
         Edit: fine, salt in the water makes five. I withdraw nothing.",
    ])),
    says(2, Other(3), "By that logic the pan is the sixth."),
    says(3, Other(14), "Now you are being difficult."),
    says(4, Other(3), "> Now you are being difficult.\n\nSaid the one who counted the water."),
    says(5, Other(27), "I came for recipes and stayed for the accounting."),
    says(6, Other(14), "Invoice follows."),
    says(0, Other(19), "Rice, egg, soy sauce, spring onion 🍳"),
    says(1, Other(5), "卵かけご飯!週に五回は食べます。"),
    says(2, Other(19), "五回!? I thought that I was the extreme one 😂"),
    says(3, Other(5), "六回目は昼です。"),
    says(1, Other(24), "Add a spoon of the crispy chilli oil and report back 🌶️"),
    says(2, Other(19), "Reporting back: I can see through time."),
    says(0, Other(17), "BEST KNIVES 90% OFF, TODAY ONLY!!! https://example.com/knives")
        .then(Removed("Advertising; the third time this week from this account.")),
    says(1, Other(9), "Reported. Also, nobody needs a knife for toast."),
    says(1, Fan, "One could argue that I need one for the butter."),
    says(0, Other(12), "شوربة عدس بالليمون والكمون. عشرون دقيقة وينتهي اليوم السيئ."),
    says(1, Author, "Recipe, please! In any language, I have a dictionary and no dignity."),
    says(
        2,
        Other(12),
        "مقادير لشخصين:\n\n- كوب عدس أحمر\n- بصلة صغيرة\n- ملعقة كمون\n- ليمونة\n- ملح\n\n\
         يُسلق كل شيء معًا خمس عشرة دقيقة، ثم يُهرس، والليمون في النهاية.",
    ),
    says(3, Author, "Made it an hour later. The lemon at the end is everything. شكرًا 🙏"),
    says(4, Other(12), "بالهناء والشفاء!"),
    says(
        0,
        Other(10),
        "Long version, because people ask me every winter.\n\nPOTATO SOUP FOR ONE, WITHOUT A RECIPE\n\n\
         1. Take the two potatoes that have begun to look at you.\n\
         2. Cut them small. It is not better, but it is faster, and you are hungry.\n\
         3. Half an onion, in butter, until the kitchen smells of somebody competent.\n\
         4. Potatoes in, water to cover, salt. Leave it alone for fifteen minutes. Read something, \
         but not your mail.\n\
         5. Crush half of it with a fork. This is the cream that everybody will ask about.\n\
         6. Pepper. More than that.\n\n\
         Variations:\n\
         \t- with a leek: elegant\n\
         \t- with a sausage: Sunday\n\
         \t- with the other half of the onion, raw: brave\n\n\
         It keeps for two days. It has never been allowed to.",
    ),
    says(1, Other(2), "> the two potatoes that have begun to look at you\n\nThe best line of this month."),
    says(2, Other(10), "They have eyes. It is only polite to look back."),
    says(3, Other(2), "I am leaving."),
    says(4, Other(10), "Take a potato."),
    says(1, Fan, "Cooked it tonight. The cat and I approve."),
    says(1, Other(28), "Fifteen minutes? At 2,400 m it took forty. Physics hates soup."),
    says(0, Other(33), "Овсянка на воде, соль, масло. Не смейтесь, это ужин чемпионов."),
    says(1, Other(16), "Никто не смеётся. С селёдкой пробовали?"),
    says(2, Other(33), "Теперь смеюсь."),
    says(0, Other(25), "Honestly, this thread is full of people who cannot cook.").then(Deleted),
    says(1, Other(4), "That is the premise of the thread, yes."),
    says(1, Other(30), "Counterpoint: we can, and we choose not to."),
    says(2, Other(4), "Peak performance."),
    says(0, Other(7), "Pão na chapa com queijo de coalho e um tomate triste."),
    says(1, Other(11), "O tomate triste é o segredo da cozinha brasileira."),
    says(2, Other(7), "Ele sabe que vai virar jantar. 🍅"),
    says(0, Other(35), "दाल, चावल, घी। और माँ को फ़ोन: नमक कितना डालूँ?"),
    says(1, Other(13), "The call to mother, in every kitchen. Mine says \"until it is enough\"."),
    says(2, Other(35), "\"अंदाज़ से\" – हर बार।"),
    says(3, Other(6), "Mine said \"until your hand says stop\". My hand has never said anything."),
    says(0, Other(21), "I have our family cookbook. Write to 12 Example Lane, or 555-0142.").then(Purged),
    says(1, Other(15), "Careful, that is a home address! I have asked the moderators to erase it."),
    says(0, Celebrity, "On tour: crackers and mustard, in the dark, behind the drums. No witnesses."),
    says(1, Fan, "I am going to frame this comment."),
    says(1, Other(26), "😮 She reads the comments?"),
    says(2, Celebrity, "She cooks, too. Badly."),
    says(3, Other(26), "😭❤️"),
    says(1, Other(38), "What kind of mustard? Asking for all of us."),
    says(0, Other(23), "김치볶음밥. 재료는 다섯 개, 설거지는 하나. 👌"),
    says(1, Other(29), "Εγώ: ντομάτα, φέτα, ψωμί, λάδι, ρίγανη. Καμία κατσαρόλα."),
    says(2, Other(23), "설거지 제로… 졌습니다."),
    says(0, Other(18), "Gnocchi from the packet, fried, not boiled. Lemon. Do not tell Italy."),
    says(1, Other(34), "L'Italia ha letto. L'Italia è delusa. L'Italia chiede se restano gnocchi."),
    says(2, Other(18), "Two portions. Hurry."),
    says(0, Other(8), "👨‍👩‍👧‍👦 approved: pasta with butter. The critics are 4 and 6, and never wrong."),
    says(1, Other(36), "Mine send back the pasta if it touches the butter."),
    says(0, Other(39), "ข้าวไข่เจียว กับซอสพริก จบวันอย่างสวยงาม"),
    says(0, Author, "I wrote down 31 suppers, and I own ingredients for six. Thank you all!"),
    says(1, Fan, "Toast at mine, if the sardines fail."),
];

const BRIDGE: &[Remark] = &[
    says(0, Other(2), "Twelve minutes, they say. I timed the detour today: twenty-three."),
    says(1, Author, "On a Sunday?"),
    says(2, Other(2), "On a Sunday. With green lights."),
    says(0, Fan, "Six weeks of a quiet bridge with trams and bicycles sounds like a present."),
    says(1, Other(6), "Not if you deliver fridges for a living."),
    says(2, Other(31), "Then load the fridges on a tram."),
    says(3, Other(6), "This is exactly why nobody can talk to you people."),
    says(0, Other(22), "And where do 600 cars park? In your garden?").then(Removed("Personal attack.")),
    says(0, Author, "I asked about a bridge and got a fight about parking. I am closing the comments."),
];

const RECORD: &[Remark] = &[
    says(0, Fan, "Track four. The duck. I am not all right."),
    says(1, Celebrity, "The duck declined a credit."),
    says(0, Other(24), "Listened twice on the way to work, and then missed the stop for work."),
    says(0, Other(27), "Is there a version on vinyl?"),
    says(1, Celebrity, "In March. The factory is slow, and so was I."),
    says(1, Other(32), "Pre-ordered before I owned a turntable."),
    says(0, Other(20), "ボートハウスの音、雨の日に合いますね。"),
    says(0, Other(37), "FIRST"),
    says(1, Other(24), "You are eighth."),
];

const FRONT_ROW: &[Remark] = &[
    says(0, Other(9), "Me! Row three, behind somebody tall, as is tradition."),
    says(1, Fan, "I will crouch in solidarity."),
    says(0, Other(1), "Jealous. Sing loudly for those of us at home."),
    says(1, Fan, "I was told never to do that again."),
];

const BISCUIT: &[Remark] = &[
    says(0, Fan, "The good armchair is his by law now."),
    says(1, Author, "He has hired a lawyer. It is the cat."),
    says(0, Other(9), "Nine is the best age for a dog: all of the opinions and none of the shoes."),
];

const SHORT_BOOKS: &[Remark] = &[
    says(0, Fan, "Anything about a lighthouse keeper, please. I will accept weather as a plot."),
    says(1, Author, "There are four on the list, and in three of them the weather wins."),
    says(0, Other(18), "Does a cookbook count?"),
];

const MARKET: &[Remark] = &[
    says(0, Fan, "I had this translated: \"there were more cats than tuna\". Perfect."),
    says(1, Author, "猫は無料でした。"),
];

const RAILWAY: &[Remark] = &[
    says(0, Other(4), "Is it the goose at kilometre 40? We have met."),
    says(1, Author, "It is. It asked about you."),
    says(0, Fan, "9 °C in a tunnel: the best air conditioning of the region."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reply_has_a_comment_above_it() {
        for Discussion { post, remarks, .. } in DISCUSSIONS {
            assert_eq!(remarks.first().map(|first| first.depth), Some(0), "{post}");
            for pair in remarks.windows(2) {
                assert!(pair[1].depth <= pair[0].depth + 1, "{post}: {}", pair[1].body);
            }
        }
    }

    #[test]
    fn something_of_everything_happens() {
        let remarks: Vec<Remark> =
            DISCUSSIONS.iter().flat_map(|discussion| discussion.remarks).copied().collect();
        assert!(remarks.iter().any(|remark| matches!(remark.fate, Edited(bodies) if bodies.len() > 1)));
        assert!(remarks.iter().any(|remark| matches!(remark.fate, Deleted)));
        assert!(remarks.iter().any(|remark| matches!(remark.fate, Removed(_))));
        assert!(remarks.iter().any(|remark| matches!(remark.fate, Purged)));
        // Every write is synced to the disk, and the demo should start soon.
        assert!((100..200).contains(&remarks.len()), "{}", remarks.len());
    }
}
