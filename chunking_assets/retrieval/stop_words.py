"""Words that are in every text of a language and say nothing of its subject.

Short lists of articles, pronouns, prepositions, auxiliaries and question words: what a question
has whatever it asks.
"""

_LISTS = {
    "en": """a an the and or but if of at by for with about to from in on into over under as is are
        was were be been being am do does did done has have had having i me my we our us you your
        he him his she her it its they them their this that these those there here what which who
        whom whose when where why how than then so no not nor can could should would may might must
        will shall just very too also any some all each both more most other such only own same s t
        """,
    "pt": """a o as os um uma uns umas e ou mas se de do da dos das em no na nos nas num numa por
        pelo pela pelos pelas para com sem sob sobre entre até ao aos à às é são era eram foi foram
        ser sido sendo está estão estava estar tem têm tinha ter há havia eu me meu minha meus
        minhas nós nosso nossa você vocês seu sua seus suas ele ela eles elas lhe lhes isto isso
        este esta estes estas esse essa esses essas aquele aquela que qual quais quem quando onde
        porque porquê como quanto quanta quantos quantas não nem já também muito mais menos só
        """,
    "fr": """le la les l un une des du de d et ou mais si en dans par pour avec sans sous sur entre
        vers chez à au aux est sont était étaient fut être été étant a ont avait avoir ai as je me
        m mon ma mes nous notre nos tu te t vous votre vos il elle ils elles on lui leur leurs se s
        son sa ses ce c cet cette ces cela ça qui que qu quoi dont où quand comment combien
        pourquoi quel quelle quels quelles ne n pas non ni plus moins très aussi y j
        """,
    "es": """el la los las un una unos unas y e o u pero si de del al a en por para con sin sobre
        entre hasta desde es son era eran fue fueron ser sido está están estaba estar ha han había
        haber tiene tienen tener yo me mi mis nosotros nuestro nuestra tú te tu tus usted ustedes
        su sus él ella ellos ellas le les lo se esto eso este esta estos estas ese esa esos esas
        que qué cual cuál cuáles quien quién cuando cuándo donde dónde cómo como cuánto cuánta
        cuántos cuántas porque no ni ya también muy más menos
        """,
    "de": """der die das den dem des ein eine einen einem einer eines und oder aber wenn als von vom
        zu zum zur in im an am auf aus bei mit nach ohne um für über unter vor ist sind war waren
        sein gewesen wird werden wurde wurden worden hat haben hatte hatten ich mich mir mein meine
        wir uns unser unsere du dich dir dein deine ihr ihre er ihn ihm sie es sich dies diese
        dieser dieses was welche welcher welches wer wen wem wann wo warum wie wieviel kann können
        muss müssen soll darf nicht kein keine auch noch nur sehr
        """,
    "it": """il lo la i gli le l un uno una e o ma se di del dello della dei degli delle a al allo
        alla ai agli alle da dal dalla in nel nella nei nelle con su sul sulla per tra fra è sono
        era erano fu essere stato ha hanno aveva avere io mi mio mia noi nostro tu ti tuo tua voi
        vostro lui lei loro suo sua suoi sue si questo questa questi queste quello quella che chi
        cui quale quali quando dove come quanto quanta quanti quante perché non né già anche molto
        più meno
        """,
}
STOP_WORDS = {language: frozenset(words.split()) for language, words in _LISTS.items()}
"""By ISO 639-1 code, in lower case."""
