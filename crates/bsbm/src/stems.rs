//! The word list's raw material: English stems, affixes and syllables.

/// Stems that take suffixes and prefixes, or join two by two.
pub(crate) const STEMS: &str = "\
able act add age aid aim air alarm amber anchor angle animal apple arch arm arrow art ash ask atlas attic aunt author autumn axis
badge bake balance ball bamboo band bank bar bark barn barrel base basin basket bath battle bay beach beacon bead beam bean bear beat beauty bed bee bell belt bench bend
berry bind birch bird blade blanket blaze blend bless block bloom blossom blow blue board boat body boil bold bolt bone book boot border borrow bottle boulder bounce bow bowl box
branch brass brave bread break breeze brick bridge bright bring broad brook broom brother brown brush bubble bucket bud build bundle burn bush butter button buzz
cabin cable cactus cake calm camel camp canal candle canvas canyon cap cape card care cargo carpet carrot carry cart carve castle catch cattle cave cedar cellar center chain chair chalk chamber
chance change channel chapter charm chart chase cheer cheese cherry chess chest chief child chime chin choice choose circle circus city civil claim clap clay clean clear clerk clever cliff climb
cloak clock close cloth cloud clover club coach coal coast coat cobalt coffee coil coin cold collar color comb comet comfort common compass copper coral cord core cork corn corner cosmic cotton couch
count country courage course cover crab cradle craft crane crater cream credit creek crest crisp crop cross crowd crown crystal cube culture cup curl current curtain curve cushion custom cycle
dairy daisy damp dance dare dark dart dash dawn deal dear debate decide deck deep deer degree delta depth desert design desk detail dew dial diamond dice differ dig dim dine dinner direct dish distant dive
divide dock doctor dog dome donkey door dot dove dozen draft dragon drain draw dream dress drift drill drink drive drop drum dry duck dune dust duty
eagle ear earn earth ease east easy echo edge edit effort egg elbow elder elect elm ember empire empty enamel end energy engine enjoy enter equal escape even event exact example expect express extend eye
fable fabric face fact fade fair faith falcon fall fame family fancy farm fast father feast feather feed feel fence fern ferry fest fiber fiddle field fig figure fill film filter find fine finger finish fire firm fish fit flag
flame flash flat flavor fleet flight flint float flock flood floor flour flow flower fluid flute fly foam fog fold folk follow food foot force forest forge fork form fort forward fossil found fountain fox frame free freeze
fresh friend frog front frost fruit fuel full funnel fur furnace future
gain galaxy gallery game garden garlic gate gather gem general gentle giant gift ginger give glacier glad glass gleam glide globe glory glove glow goal goat gold good goose grace grain grand granite grant grape graph grass gravel
gravity gray green greet grid grin grip ground group grove grow guard guest guide guitar gulf
habit hail hall hammer hand handle happy harbor hard harmony harp harvest hat hatch haven hawk hazel head heal hear heart heat hedge height help herald herb herd heron hide high hill hinge history hold hollow holly home honest honey hook
hope horizon horn horse host hotel hour house human humble humor hunt hurry
ice idea image inch index ink inland insect inside iris iron island item ivory ivy
jacket jade jar jasmine jelly jewel join joke jolly journal journey joy judge juice jump jungle junior just
keen keep kettle key kind king kitchen kite knee knit knock knot know
label lace ladder lady lake lamb lamp lance land lantern large lark laser last late laugh launch laurel lava law lawn lay lead leaf learn leather ledge legend lemon lend lens letter level lever library lift light lilac lily limb lime
limit line linen lion liquid list listen live lizard loaf loan local lock lodge log long look loom loop lotus loud love low loyal lucid luck lumber lunar lunch lyric
machine magic magnet mail main maize major make mango mantle maple map marble march margin marine mark market marsh mask mason master match mate matter meadow meal measure medal meet mellow melody melt member mend mental merit
mesh metal meter method middle mild mile milk mill mind mine minor mint mirror mist mix mobile model modern moment monsoon month moon moral morning mosaic moss mother motion motor mount mouse move mural muscle music mystic
name narrow nation nature navy near neat nectar needle neighbor nest net neutral night noble nod noise noon normal north note novel number nurse nut nylon
oak oasis object oboe observe ocean offer office olive onion open opera opinion oral orange orbit orchard orchid order organ origin osprey otter oval oven own oyster
pace pack paddle page paint pair palace palm panda panel paper parade parcel parent park part party pass past paste patch path patient pattern pause pave peace peach peak pear pearl pebble pedal pencil people pepper perfect period
person petal phase phone photo phrase piano pick picnic picture piece pigeon pilgrim pillar pilot pine pink pioneer pipe pitch place plain plan planet plant plate play please plot plow plum pocket poem poet point polar pole polish pond
pony pool poplar port post pot potter pour powder power prairie praise prefer present press pretty price pride prime print prism private prize profit proof proper proud public pull pulse pump puppet pure purple push puzzle
quail quality quarry quart quartz queen quest quick quiet quill quilt quiz
rabbit race radar radio raft rail rain raise ramp ranch range rapid rate raven ray reach read ready real reason record reed reef refer regal region relay relic relish remark remedy rent repair reply report rescue reserve rest result
return reward rhyme rhythm ribbon rice rich ride ridge right ring rise river road roast robin rock rocket roll roof room root rope rose rotor round route row royal ruby rug rule run rural rush rust
saddle safe saffron sage sail salad salmon salt salute sand satin sauce save scale scarf scene scent school science scope score scout screen script sculpt sea seal search season seat second secret seed select send senior sense
serve set settle shade shadow shape share sharp shed sheep shelf shell shelter shield shift shine ship shirt shoe shop shore short shoulder show shower shrub signal silence silk silver simple sing sister skate sketch skill skirt sky
slate sleep sleeve slice slide slope slow smart smile smoke smooth snail snow soap social sock soft soil solar solid solve son song sonnet sort sound soup south space spark sparrow speak special speed spell sphere spice spider spin
spiral spirit splash sponge spoon sport spray spread spring sprout spruce square squirrel stable stack stage stair stamp stand star start state station statue stay steady steam steel stem step stern stick still stitch stock stone stool store
storm story stove stream street stretch string stripe strong studio study style sugar suit summer summit sun supper supply support sure surf surprise swallow swan sweep sweet swift swim swing switch symbol system
table tablet tailor take tale talent talk tall tame tangle tank tape target task taste teach team tell temper temple tender tennis tent term test text thank theater theme thick thin think thistle thread throat thunder ticket tide tidy tie
tiger tile timber time tin title toast today token tomato tone tool torch total touch tour towel tower town track trade trail train transit travel tray treasure treat tree trek trend trial tribe trick trim trip triumph trot trout truck
true trumpet trunk trust truth tub tube tulip tune tunnel turkey turn turtle twig twin twist type
umbrella uncle union unit urban usual utter
vale valid valley value valve vapor variety vast vault vector velvet venture verse vessel vest view villa village vine vintage viola violet violin virtue vision visit vital vivid vocal voice volume vote voyage
wade wafer wagon wait wake walk wall walnut wander want warbler warm wash watch water wave wax way wealth wear weather weave wedge week weigh west whale wheat wheel whirl whisper whistle white whole wide wild willow win wind window wing
winter wire wise wish wit wolf wonder wood wool word work world worth wreath wrist write
yacht yard yarn year yellow yield yoke young
zeal zebra zenith zephyr zero zest zinc zone";

/// Endings, the frequent ones several times.
pub(crate) const SUFFIXES: &[&str] = &[
    "", "", "s", "s", "s", "s", "s", "s", "es", "ed", "ed", "ed", "ed", "ing", "ing", "ing", "ing",
    "er", "er", "ers", "ers", "est", "ly", "ly", "ly", "ness", "ness", "nesses", "y", "ier",
    "iest", "ily", "iness", "able", "ably", "ability", "al", "ally", "ation", "ations", "ative",
    "ator", "ators", "en", "ened", "ening", "ful", "fully", "ic", "ical", "ically", "ish", "ism",
    "ist", "ists", "ity", "ities", "ize", "ized", "izes", "izing", "ization", "less", "lessly",
    "lessness", "let", "like", "ment", "ments", "or", "ous", "ously", "ship", "some", "ward",
    "wise",
];

/// Beginnings; most words have none.
pub(crate) const PREFIXES: &[&str] = &[
    "un", "un", "un", "re", "re", "re", "in", "dis", "dis", "mis", "non", "over", "out", "under",
    "pre", "de", "en", "inter", "sub", "super", "semi", "anti", "counter", "fore", "trans", "up",
    "mid", "auto", "bi", "co", "con", "micro",
];

/// First sounds of a made-up syllable, the frequent ones several times.
pub(crate) const ONSETS: &[&str] = &[
    "b", "b", "c", "c", "c", "d", "d", "f", "g", "h", "h", "l", "l", "m", "m", "m", "n", "p", "p",
    "p", "r", "r", "s", "s", "s", "t", "t", "t", "v", "w", "j", "k", "bl", "br", "ch", "cl", "cr",
    "dr", "fl", "fr", "gl", "gr", "pl", "pr", "qu", "sc", "sh", "sl", "sp", "st", "st", "str",
    "th", "tr", "tw",
];

/// Middle sounds of a made-up syllable.
pub(crate) const NUCLEI: &[&str] = &[
    "a", "a", "a", "e", "e", "e", "e", "i", "i", "i", "o", "o", "o", "u", "u", "ea", "ou", "oo",
    "ai", "ee", "y",
];

/// Last sounds of a made-up syllable.
pub(crate) const CODAS: &[&str] = &[
    "n", "n", "n", "r", "r", "r", "l", "l", "t", "t", "s", "m", "d", "c", "p", "b", "g", "v", "st",
    "nt", "nd", "ck", "ct", "ll", "rt", "ss", "sh", "ng", "mp", "lt", "tt", "rd", "nc", "ph",
];

/// Beginnings of given names.
pub(crate) const NAME_BEGINNINGS: &[&str] = &[
    "Ad", "Al", "Am", "An", "Ar", "Bel", "Ber", "Bri", "Cal", "Car", "Cor", "Dan", "Dar", "Del",
    "Dor", "Ed", "El", "Em", "Er", "Ev", "Fa", "Fel", "Fio", "Ga", "Ger", "Gil", "Ha", "Hel", "Hi",
    "Il", "In", "Is", "Ja", "Jo", "Jul", "Ka", "Kel", "Ki", "La", "Leo", "Li", "Lu", "Ma", "Mar",
    "Mel", "Mi", "Na", "Nor", "Ol", "Or", "Pa", "Per", "Ra", "Ri", "Ro", "Sa", "Sel", "Si", "Ta",
    "Te", "Tho", "Ul", "Va", "Vi", "Wil", "Ya", "Yo", "Ze",
];

/// Middles of given names; many have none.
pub(crate) const NAME_MIDDLES: &[&str] = &[
    "", "", "", "", "", "", "", "", "", "", "", "", "", "a", "be", "bri", "da", "di", "do", "fri",
    "gi", "ko", "la", "le", "li", "lo", "ma", "mi", "na", "ni", "ra", "ri", "ro", "sa", "sha",
    "ta", "ti", "to", "va", "vi", "wi", "zi",
];

/// Ends of given names.
pub(crate) const NAME_ENDINGS: &[&str] = &[
    "a", "ah", "an", "ana", "ard", "bert", "da", "del", "den", "die", "ella", "en", "ene", "eth",
    "ia", "ic", "ie", "ika", "ina", "ine", "ion", "is", "ita", "ka", "ko", "la", "las", "lie",
    "lin", "mir", "mund", "na", "nard", "ne", "nie", "nor", "o", "on", "ra", "ric", "ron", "rik",
    "sha", "son", "stan", "ta", "ton", "us", "vin", "win", "ya",
];
